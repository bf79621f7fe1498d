//! Exit codes, a contract for scripts: 0 nothing flagged, 10 watermark found, 11 insufficient,
//! 2 the caller's input is wrong, 1 the machine or this program failed; 141 as a shell reports a
//! closed pipe.

use std::io::ErrorKind as IoKind;
use std::process::ExitCode;

use crate::output::note;
use greenmark::ErrorKind;
use greenmark::detect::Verdict;
use greenmark::document::visible::one_line;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Ran, nothing flagged.
    Success,
    /// At least one input carries a mark.
    Watermarked,
    /// No input carries a mark and at least one was too short to say.
    Insufficient,
    /// Input, flags or files are wrong.
    Input,
    /// The environment or the program failed.
    Failure,
    /// The reader of the output went away: it has what it wanted, and no verdict is claimed.
    ClosedPipe,
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Watermarked => 10,
            Self::Insufficient => 11,
            Self::Input => 2,
            Self::Failure => 1,
            Self::ClosedPipe => 141,
        }
    }

    /// The exit of several inputs: any error first (2, then 1), else any 10, else any 11, else 0.
    pub(crate) fn combine(self, other: Self) -> Self {
        // Scripts see codes in this order of precedence.
        let rank = |exit: Self| match exit {
            Self::ClosedPipe => 0,
            Self::Input => 1,
            Self::Failure => 2,
            Self::Watermarked => 3,
            Self::Insufficient => 4,
            Self::Success => 5,
        };
        if rank(self) <= rank(other) { self } else { other }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Watermarked => Self::Watermarked,
            Verdict::NotDetected => Self::Success,
            Verdict::Insufficient => Self::Insufficient,
        }
    }
}

/// Prints an error on standard error and gives its exit. A reader that closed the pipe has what
/// it wanted: that is no error.
pub(crate) fn report(error: &anyhow::Error) -> Exit {
    let exit = of(error);
    if exit != Exit::ClosedPipe {
        // A message may hold names and values of a text under examination.
        note!("{}", one_line(&message(error)));
    }
    exit
}

/// The exit that an error stands for.
pub(crate) fn of(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if let Some(error) = cause.downcast_ref::<greenmark::Error>() {
            return match error.kind() {
                ErrorKind::Input => Exit::Input,
                ErrorKind::Environment | ErrorKind::Internal => Exit::Failure,
            };
        }
        if let Some(error) = cause.downcast_ref::<std::io::Error>()
            && error.kind() == IoKind::BrokenPipe
        {
            return Exit::ClosedPipe;
        }
    }
    Exit::Failure
}

/// The error and its causes, each said once: some errors repeat their source in their own text.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let part = cause.to_string();
        if text.is_empty() {
            text = part;
        } else if !text.contains(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
    }
    text
}
