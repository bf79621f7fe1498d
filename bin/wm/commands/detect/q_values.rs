//! `--q-values`: every record waits in a temporary file until the p of all texts are known.
//!
//! In memory stays one number for each judged text.

use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, Write};

use anyhow::{Context, Result};
use greenmark::stats::{LogProbability, benjamini_hochberg};
use serde_json::json;

use crate::output;

const JUDGED: u8 = 1;
const FAILED: u8 = 0;

/// Records on disk, in order.
pub(super) struct Spool {
    file: BufWriter<File>,
    p: Vec<LogProbability>,
}

impl Spool {
    pub(super) fn new() -> Result<Self> {
        let file = tempfile::tempfile().context("cannot make a temporary file for --q-values")?;
        Ok(Self { file: BufWriter::new(file), p: Vec::new() })
    }

    /// A record of which the q stands between `head` and `tail`.
    pub(super) fn judged(&mut self, head: &str, tail: &str, p: LogProbability) -> Result<()> {
        self.p.push(p);
        self.write(JUDGED, &[head, tail])
    }

    pub(super) fn failed(&mut self, line: &str) -> Result<()> {
        self.write(FAILED, &[line])
    }

    fn write(&mut self, kind: u8, parts: &[&str]) -> Result<()> {
        let mut write = || {
            self.file.write_all(&[kind])?;
            for part in parts {
                self.file.write_all(&(part.len() as u64).to_le_bytes())?;
                self.file.write_all(part.as_bytes())?;
            }
            Ok::<(), std::io::Error>(())
        };
        write().context("cannot write to the temporary file of --q-values")
    }

    /// Shows every record with its q.
    pub(super) fn finish(self, json: bool) -> Result<()> {
        let reading = "cannot read the temporary file of --q-values";
        let mut file = self.file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.rewind().context(reading)?;
        let mut file = BufReader::new(file);
        let texts = self.p.len();
        let mut q = benjamini_hochberg(&self.p).into_iter();
        let mut kind = [0];
        loop {
            match file.read_exact(&mut kind) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error).context(reading),
            }
            let mut record = part(&mut file).context(reading)?;
            if kind[0] == JUDGED {
                // One was pushed for each record of this kind.
                let q = q.next().unwrap_or(LogProbability::ONE);
                if json {
                    record.push_str(&fields(q));
                }
                record.push_str(&part(&mut file).context(reading)?);
                if !json {
                    record.push_str(&words(q, texts));
                }
            }
            output::write(&record)?;
        }
    }
}

fn part(file: &mut impl Read) -> std::io::Result<String> {
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let mut text = String::new();
    file.by_ref().take(u64::from_le_bytes(length)).read_to_string(&mut text)?;
    Ok(text)
}

/// The fields of a JSON record, behind others.
fn fields(q: LogProbability) -> String {
    let value = q.p_value();
    let status =
        value.status().map_or_else(String::new, |status| format!("\"q_status\":\"{status}\","));
    format!(",\"q_value\":{},{status}\"log10_q\":{}", json!(value), json!(q.log10()))
}

fn words(q: LogProbability, texts: usize) -> String {
    let value = q
        .p_value()
        .value()
        .map_or_else(|| format!("log10 q {:.2}", q.log10()), |q| format!("q {q:.3e}"));
    let plural = if texts == 1 { "" } else { "s" };
    format!("  {value} among {texts} text{plural} (Benjamini-Hochberg)\n")
}
