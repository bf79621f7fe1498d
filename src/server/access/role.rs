//! Roles: what a key opens. Scores are an oracle for forging and scrubbing, so detail follows the
//! role.

use serde::{Deserialize, Serialize};

/// What a caller may do; each role may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Learn a verdict, coarse and at a low rate.
    Public,
    /// Read full reports.
    Reviewer,
    /// Generate, and read the metrics.
    Operator,
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Reviewer => "reviewer",
            Self::Operator => "operator",
        })
    }
}

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name of the API key, `local` without keys. Never the key.
    pub name: String,
    /// What it may do.
    pub role: Role,
}
