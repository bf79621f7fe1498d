//! The audit line: what was asked, by whom, with what result. Never a text, never a key.
//!
//! Each line is one JSON object, written at once. A file is opened again when it was renamed, as
//! tools that rotate logs do, without a signal. A disk that takes no more lines does not stop the
//! service: the lost lines are counted.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use super::access::{inode, private};
use super::layers::log;
use crate::detect::Verdict;
use crate::error::{Error, Result};

/// Time between two looks at whether the file is still the one at its path.
const LOOK: Duration = Duration::from_secs(1);

/// Time between two complaints about lost lines.
const COMPLAINT: Duration = Duration::from_mins(1);

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
#[derive(Debug, Default)]
pub struct Audit {
    file: Option<Mutex<AuditFile>>,
    access_log: AccessLog,
    lost: AtomicU64,
    complained: Mutex<Option<Instant>>,
}

impl Audit {
    /// Lines go to standard error.
    #[must_use]
    pub fn standard_error() -> Self {
        Self::default()
    }

    /// Lines are appended to a file, which is made with mode 0600 when it is not there.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn file(path: &Path) -> Result<Self> {
        let failed = |source| Error::io("open the audit log", path, source);
        let file = AuditFile::open(path).map_err(failed)?;
        Ok(Self { file: Some(Mutex::new(file)), ..Self::default() })
    }

    /// Turns the access log on or off.
    #[must_use]
    pub fn access_log(mut self, access_log: AccessLog) -> Self {
        self.access_log = access_log;
        self
    }

    /// Writes one line.
    pub fn record(&self, entry: &Entry<'_>) {
        let line = line(entry, entry.duration);
        let written = line.and_then(|line| match &self.file {
            Some(file) => file.lock().unwrap_or_else(PoisonError::into_inner).append(&line),
            None => std::io::stderr().lock().write_all(&line),
        });
        if let Err(error) = written {
            let lost = self.lost.fetch_add(1, Ordering::Relaxed) + 1;
            self.complain(&format!("audit lines are lost, {lost} until now: {error}"));
        }
    }

    /// Lines that could not be written.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes one line of the access log, when there is one.
    pub(super) fn record_access(&self, entry: &AccessEntry, duration: Duration) {
        if self.access_log == AccessLog::Off {
            return;
        }
        let written = line(entry, duration).map(|line| std::io::stderr().lock().write_all(&line));
        // Nobody is left to tell when standard error is gone.
        drop(written);
    }

    fn complain(&self, text: &str) {
        let mut last = self.complained.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= COMPLAINT) {
            *last = Some(Instant::now());
            log(text);
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

#[derive(Debug)]
struct AuditFile {
    path: PathBuf,
    file: File,
    inode: u64,
    looked: Instant,
    /// Whether the last line was cut off, so that the next one must not be glued to it.
    cut: bool,
}

impl AuditFile {
    fn open(path: &Path) -> std::io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = private(options.create(true).append(true).read(true)).open(path)?;
        let metadata = file.metadata()?;
        let cut = metadata.is_file() && metadata.len() > 0 && !ends_whole(&file)?;
        let (path, inode) = (path.to_path_buf(), inode(&metadata));
        Ok(Self { path, file, inode, looked: Instant::now(), cut })
    }

    fn append(&mut self, line: &[u8]) -> std::io::Result<()> {
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            let there = std::fs::metadata(&self.path).map(|metadata| inode(&metadata));
            if there.ok() != Some(self.inode) {
                *self = Self::open(&self.path)?;
            }
        }
        let start: &[u8] = if self.cut { b"\n" } else { b"" };
        let whole = [start, line].concat();
        // One write a line: the system appends it in one piece, and a program that is killed has
        // written all of it or nothing.
        let written = self.file.write(&whole)?;
        if written == whole.len() {
            self.cut = false;
            return Ok(());
        }
        self.cut = self.cut || written > 0;
        Err(std::io::ErrorKind::WriteZero.into())
    }
}

/// Whether the last byte ends a line.
fn ends_whole(mut file: &File) -> std::io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
