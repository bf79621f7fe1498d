//! The one error type of the library, and the three kinds a caller acts on.
//!
//! Every variant carries what a reader needs to mend the cause: the thing, the place, the value
//! found and the way out. Rendering, exit codes and HTTP statuses are derived from
//! [`Error::kind`] elsewhere; no message is parsed.

use std::path::{Path, PathBuf};

/// The library's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who can mend an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The caller's values, flags or files are wrong (exit code 2, HTTP 400).
    Input,
    /// The machine lacks something: a network, a permission, memory (exit code 1, HTTP 503).
    Environment,
    /// A fault of this library (exit code 1, HTTP 500).
    Internal,
}

/// Everything that can go wrong in the library.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A parameter outside its range.
    #[error("{name}: {value} is not allowed; allowed: {allowed}")]
    Parameter {
        /// The parameter in the field's own spelling, for example `top_p`.
        name: &'static str,
        /// The value found, as text.
        value: String,
        /// The range or form that is allowed.
        allowed: String,
    },
    /// A file whose content is damaged, cut short or not what it claims to be.
    #[error("{}{}: {problem}; {remedy}", path.display(), offset.map_or(String::new(), |o| format!(" (byte {o})")))]
    File {
        /// The file.
        path: PathBuf,
        /// Where in it, in bytes from its start, when known.
        offset: Option<u64>,
        /// What is wrong, with the value found.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
    /// A document given by value, from a body or standard input, that is not what it has to be.
    #[error("{what}{}: {problem}; {remedy}", offset.map_or(String::new(), |o| format!(" (byte {o})")))]
    Document {
        /// The kind of document, for example `the PDF file`.
        what: &'static str,
        /// Where in it, in bytes from its start, when known.
        offset: Option<u64>,
        /// What is wrong.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
    /// The operating system refused an operation on a file.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The verb, for example `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Something this build knows of by name but cannot do.
    #[error("unsupported {what} {found}; supported: {supported}")]
    Unsupported {
        /// The kind of thing, for example `architecture`.
        what: &'static str,
        /// What was found.
        found: String,
        /// What would be accepted.
        supported: String,
    },
    /// A token id that the vocabulary does not have.
    #[error("token id {id} at position {position} is outside the vocabulary of {vocab} ids")]
    TokenOutOfRange {
        /// Zero-based position in the sequence.
        position: usize,
        /// The id found.
        id: u64,
        /// The number of ids.
        vocab: usize,
    },
    /// Two sides of a configuration disagree, so that a verdict would be meaningless.
    #[error("{field} disagrees: {left_name} says {left}, {right_name} says {right}; {remedy}")]
    Mismatch {
        /// The field of the profile.
        field: &'static str,
        /// Name of the first side, for example `--gamma`.
        left_name: String,
        /// Its value.
        left: String,
        /// Name of the second side, for example `the sidecar`.
        right_name: String,
        /// Its value.
        right: String,
        /// What to do about it.
        remedy: String,
    },
    /// A step of the sampling chain left no token.
    #[error("no token allowed: {member} removed the last candidate at step {step}")]
    NoTokenAllowed {
        /// The chain member that emptied the set.
        member: &'static str,
        /// Zero-based generation step.
        step: u64,
    },
    /// A model produced logits that are no numbers.
    #[error(
        "step {step}: {nan} of {total} logits are NaN and {infinite} are +infinity; \
         the model file or its data type is broken"
    )]
    NonFiniteLogits {
        /// Zero-based generation step.
        step: u64,
        /// Count of NaN.
        nan: usize,
        /// Count of positive infinities.
        infinite: usize,
        /// Number of logits.
        total: usize,
    },
    /// More tokens asked for than the model's context holds.
    #[error(
        "{prompt} prompt tokens and {requested} new ones exceed the model's context of {context}; \
         {}",
        context_remedy(*prompt, *context)
    )]
    ContextLength {
        /// Prompt length in tokens.
        prompt: usize,
        /// New tokens asked for.
        requested: usize,
        /// The model's context length.
        context: usize,
    },
    /// Something that has to be fetched or installed is not there.
    #[error("{what} is not available: {reason}\n{remedy}")]
    Unavailable {
        /// The thing, for example `model smollm2-135m-instruct`.
        what: String,
        /// Why it could not be had.
        reason: String,
        /// The exact commands that mend it.
        remedy: String,
    },
    /// A lower layer failed in a way that no input explains.
    #[error("{what}: {source}")]
    Backend {
        /// What was being done.
        what: String,
        /// The layer's own error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Who can mend this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Parameter { .. }
            | Self::File { .. }
            | Self::Document { .. }
            | Self::Unsupported { .. }
            | Self::TokenOutOfRange { .. }
            | Self::Mismatch { .. }
            | Self::NoTokenAllowed { .. }
            | Self::ContextLength { .. } => ErrorKind::Input,
            Self::Io { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound
                | std::io::ErrorKind::AlreadyExists
                | std::io::ErrorKind::IsADirectory
                | std::io::ErrorKind::NotADirectory
                | std::io::ErrorKind::InvalidData => ErrorKind::Input,
                _ => ErrorKind::Environment,
            },
            Self::Unavailable { .. } => ErrorKind::Environment,
            Self::NonFiniteLogits { .. } | Self::Backend { .. } => ErrorKind::Internal,
        }
    }

    /// A parameter outside its range.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "numbers and texts alike are given as they are"
    )]
    pub fn parameter(name: &'static str, value: impl ToString, allowed: impl Into<String>) -> Self {
        Self::Parameter { name, value: value.to_string(), allowed: allowed.into() }
    }

    /// A damaged file.
    pub fn file(
        path: impl AsRef<Path>,
        offset: impl Into<Option<u64>>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::File {
            path: path.as_ref().to_path_buf(),
            offset: offset.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// A document that is not what it has to be.
    pub fn document(
        what: &'static str,
        offset: impl Into<Option<u64>>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::Document {
            what,
            offset: offset.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// A refusal of the operating system.
    pub fn io(action: &'static str, path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { action, path: path.as_ref().to_path_buf(), source }
    }

    /// A failure of a lower layer.
    pub fn backend(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Backend { what: what.into(), source: source.into() }
    }
}

fn context_remedy(prompt: usize, context: usize) -> String {
    match context.checked_sub(prompt) {
        None | Some(0) => format!("shorten the prompt to fewer than {context} tokens"),
        Some(room) => format!("shorten the prompt or ask for at most {room} new tokens"),
    }
}
