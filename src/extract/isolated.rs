//! Reading a foreign file in a child process.
//!
//! The readers of HTML, DOCX and PDF are large programs of other people and the files come from
//! strangers. In a process of its own a reader that loops, overflows its stack or eats memory
//! ends alone: the caller gets an error about the file. The child is `wm extract --in-process`,
//! which puts itself under limits of memory and processor time before it reads a byte
//! (`bin/wm/commands/extract.rs`); time and the size of the answer are held here.
//!
//! How many children run at once is the caller's to bound.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::{Extracted, Format, Limits};
use crate::error::{Error, Result};

/// Address space that the child allows itself, in bytes.
pub const READER_MEMORY_BYTES: u64 = 1 << 30;

const AGAIN: &str = "save it again, or give its text in another format";

/// How a foreign file is read.
#[derive(Clone, Debug)]
pub struct Isolation {
    /// The program `wm`: [`std::env::current_exe`] in `wm` itself.
    pub program: PathBuf,
    /// Wall-clock time for one file; the child gets as many seconds of processor time.
    pub time: Duration,
    /// Sizes.
    pub limits: Limits,
}

impl Isolation {
    /// With the default limits and 20 seconds.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        Self { program, time: Duration::from_secs(20), limits: Limits::default() }
    }

    /// The arguments of the child.
    fn arguments(&self, format: Format) -> [String; 13] {
        let Limits { file_bytes, unpacked_bytes, text_bytes } = self.limits;
        [
            "extract".to_owned(),
            "--in-process".to_owned(),
            "--json".to_owned(),
            "--format".to_owned(),
            format.name().to_owned(),
            "--max-file".to_owned(),
            file_bytes.to_string(),
            "--max-unpacked".to_owned(),
            unpacked_bytes.to_string(),
            "--max-text".to_owned(),
            text_bytes.to_string(),
            format!("--max-seconds={}", self.time.as_secs().max(1)),
            "-".to_owned(),
        ]
    }
}

/// What `wm extract --json` writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// The file has a text.
    Read(Extracted),
    /// The file is refused.
    Refused {
        /// The reason.
        error: Refusal,
    },
}

/// Why a file is refused: the fields of [`Error::Document`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Where in the file, in bytes from its start, when known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_offset: Option<u64>,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl Answer {
    /// The answer that says what a read gave; none for an error that is not about the file.
    #[must_use]
    pub fn of(read: &Result<Extracted>) -> Option<Self> {
        match read {
            Ok(extracted) => Some(Self::Read(extracted.clone())),
            Err(Error::Document { offset, problem, remedy, .. }) => Some(Self::Refused {
                error: Refusal {
                    byte_offset: *offset,
                    problem: problem.clone(),
                    remedy: remedy.clone(),
                },
            }),
            Err(_) => None,
        }
    }
}

/// As [`text`](super::text), with HTML, DOCX and PDF read in a child process. Dropping the future
/// ends the child.
///
/// # Errors
/// [`Error::Document`] for everything the file can cause, also when its reader crashes or runs
/// out of time or memory; [`Error::Backend`] when no child can be started.
pub async fn isolated(format: Format, bytes: &[u8], isolation: &Isolation) -> Result<Extracted> {
    let Isolation { limits, time, .. } = isolation;
    super::limit("file", bytes.len() as u64, limits.file_bytes, format)?;
    if format.is_plain() {
        return super::text(format, bytes, limits);
    }
    let mut child = Command::new(&isolation.program)
        .args(isolation.arguments(format))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Error::backend("starting the reader of foreign files", error))?;
    // JSON writes a control character with six bytes; the rest of the answer is short.
    let most = limits.text_bytes.saturating_mul(6).saturating_add(1 << 16);
    match tokio::time::timeout(*time, converse(&mut child, bytes, most)).await {
        Ok(Ok((output, status))) => answer(format, &output, status, most),
        Ok(Err(error)) => Err(Error::backend("talking to the reader of foreign files", error)),
        Err(_) => {
            Err(unreadable(format, &format!("reading it takes longer than {} s", time.as_secs())))
        }
    }
}

/// Sends the file, takes the answer and waits for the end.
async fn converse(
    child: &mut Child,
    bytes: &[u8],
    most: u64,
) -> std::io::Result<(Vec<u8>, ExitStatus)> {
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let send = async {
        if let Some(mut stdin) = stdin {
            // A child that ends early does not read all of it; its answer says why.
            let _ = stdin.write_all(bytes).await;
            let _ = stdin.shutdown().await;
        }
    };
    let receive = async {
        let mut output = Vec::new();
        if let Some(stdout) = stdout {
            stdout.take(most.saturating_add(1)).read_to_end(&mut output).await?;
        }
        Ok::<_, std::io::Error>(output)
    };
    let ((), output) = tokio::join!(send, receive);
    let output = output?;
    if output.len() as u64 > most {
        child.start_kill()?;
    }
    Ok((output, child.wait().await?))
}

fn answer(format: Format, output: &[u8], status: ExitStatus, most: u64) -> Result<Extracted> {
    if output.len() as u64 > most {
        return Err(unreadable(format, &format!("its text has more than {most} bytes as JSON")));
    }
    // The exit code of wrong input comes with an answer that says what is wrong.
    if !matches!(status.code(), Some(0 | 2)) {
        return Err(unreadable(format, &format!("its reader ended with {status}")));
    }
    match serde_json::from_slice(output) {
        Ok(Answer::Read(extracted)) => Ok(extracted),
        Ok(Answer::Refused { error: Refusal { byte_offset, problem, remedy } }) => {
            Err(Error::document(format.what(), byte_offset, problem, remedy))
        }
        Err(error) => Err(unreadable(format, &format!("its reader gave no answer ({error})"))),
    }
}

fn unreadable(format: Format, why: &str) -> Error {
    Error::document(format.what(), None, format!("it cannot be read ({why})"), AGAIN)
}
