//! One thing that was looked at, and what was found.

use greenmark::Error;
use serde::Serialize;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// As it should be.
    Ok,
    /// Worth knowing; works all the same.
    Note,
    /// Something will fail because of it.
    Problem,
}

impl Status {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Problem => "problem",
        }
    }
}

/// A line of the result.
#[derive(Serialize)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) status: Status,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

impl Check {
    pub(crate) fn ok(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, text: text.into(), remedy: None }
    }

    pub(crate) fn note(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, status: Status::Note, text: text.into(), remedy: None }
    }

    pub(crate) fn problem(
        name: &'static str,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (text, remedy) = (text.into(), Some(remedy.into()));
        Self { name, status: Status::Problem, text, remedy }
    }

    /// An error of the library, its way out apart where it has one.
    pub(crate) fn problem_of(name: &'static str, error: &Error) -> Self {
        match error {
            Error::File { path, problem, remedy, .. } => {
                Self::problem(name, format!("{}: {problem}", path.display()), remedy)
            }
            Error::Unavailable { what, reason, remedy } => {
                Self::problem(name, format!("{what} is not available: {reason}"), remedy)
            }
            other => Self { name, status: Status::Problem, text: other.to_string(), remedy: None },
        }
    }

    pub(crate) fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}
