//! The audit line: what was asked, by whom, with what result. Never a text, never a key.
//!
//! Each line is one JSON object, written at once, by a thread that does nothing else. A disk that
//! takes no more lines, or hangs, does not stop the service: the lost lines are counted.

mod file;
mod writer;

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use super::layers::log;
use crate::detect::Verdict;
use crate::error::{Error, Result};
use file::LogFile;
use writer::{Sink, Writer};

/// The longest wait for a log that hangs when the service ends.
const FLUSH: Duration = Duration::from_secs(3);

/// One judged or generated text.
#[derive(Clone, Debug, Serialize)]
pub struct Entry<'a> {
    /// `detect`, `generate` and so on.
    pub action: &'static str,
    /// The id of the request.
    pub request_id: &'a str,
    /// The name of the caller's API key.
    pub caller: &'a str,
    /// SHA-256 of whom the caller says it asks for (`user` of a generation).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_sha256: Option<&'a str>,
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

/// One request, for the access log. The route is its pattern: what clients wrote into addresses
/// stays out.
#[derive(Clone, Debug, Serialize)]
pub(super) struct AccessEntry {
    pub(super) request_id: String,
    pub(super) caller: Option<String>,
    pub(super) method: &'static str,
    pub(super) route: String,
    pub(super) status: u16,
    pub(super) bytes: u64,
}

/// Whether every request gets a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessLog {
    /// None.
    #[default]
    Off,
    /// Each, on standard error.
    On,
}

/// Where audit lines go.
#[derive(Debug)]
pub struct Audit {
    lines: Writer,
    access: Option<Writer>,
}

impl Audit {
    /// Lines go to standard error.
    ///
    /// # Errors
    /// [`Error::Backend`] when the system gives no thread.
    pub fn standard_error() -> Result<Self> {
        Self::to(Sink::StandardError)
    }

    /// Lines are appended to a file, which is made with mode 0600 when it is not there.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Backend`] when the system gives no thread.
    pub fn file(path: &Path) -> Result<Self> {
        let failed = |source| Error::io("open the audit log", path, source);
        Self::to(Sink::File(LogFile::open(path).map_err(failed)?))
    }

    fn to(sink: Sink) -> Result<Self> {
        Ok(Self { lines: Writer::start("audit lines", sink)?, access: None })
    }

    /// Turns the access log on or off.
    ///
    /// # Errors
    /// [`Error::Backend`] when the system gives no thread.
    pub fn access_log(mut self, access_log: AccessLog) -> Result<Self> {
        self.access = match access_log {
            AccessLog::Off => None,
            AccessLog::On => Some(Writer::start("lines of the access log", Sink::StandardError)?),
        };
        Ok(self)
    }

    /// Hands one line over, to be written soon. Never waits.
    pub fn record(&self, entry: &Entry<'_>) {
        self.lines.write(line(entry, entry.duration));
    }

    /// Audit lines that could not be written.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lines.lost()
    }

    /// Lines of the access log that could not be written.
    #[must_use]
    pub fn lost_access(&self) -> u64 {
        self.access.as_ref().map_or(0, Writer::lost)
    }

    /// Waits until what was handed over is written, 3 seconds at most. For the end of a service.
    pub fn flush(&self) {
        let end = Instant::now() + FLUSH;
        let lines = self.lines.flush(end);
        let access = self.access.as_ref().is_none_or(|writer| writer.flush(end));
        // A standard error that hangs takes no complaint either.
        if !lines && access {
            log("the audit log takes no lines; the last ones are lost");
        }
    }

    /// Hands over one line of the access log, when there is one.
    pub(super) fn record_access(&self, entry: &AccessEntry, duration: Duration) {
        if let Some(access) = &self.access {
            access.write(line(entry, duration));
        }
    }
}

fn line(entry: &impl Serialize, duration: Duration) -> std::io::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Line<'a, T> {
        time: String,
        #[serde(flatten)]
        entry: &'a T,
        duration_ms: f64,
    }
    let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    let duration_ms = (duration.as_secs_f64() * 1e6).round() / 1e3;
    let mut line = serde_json::to_vec(&Line { time, entry, duration_ms })?;
    line.push(b'\n');
    Ok(line)
}
