//! The file of finished blocks: a run that was stopped goes on from it.
//!
//! One JSON line each: first what the blocks belong to, then the blocks. A line counts when its
//! line feed is there, so a write that was cut short is as if it had not begun.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use greenmark::Error;
use greenmark::detect::calibration::{Block, Calibration};
use greenmark::document::sha256_hex;
use serde_json::json;

const OTHER: &str = "name another --state, or repeat the flags and texts of that run";

/// An open state file that no other run uses.
pub(super) struct State {
    path: PathBuf,
    file: File,
}

impl State {
    /// Opens or makes the file, and gives the blocks it holds. Nothing is changed in a file that
    /// is not a state of this calibration.
    pub(super) fn open(path: &Path, calibration: &Calibration) -> Result<(Self, Vec<Block>)> {
        let failed = |source| Error::io("open", path, source);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(Error::file(path, None, "not a regular file", OTHER).into());
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let remedy = "wait for it, or name another --state";
                return Err(Error::file(path, None, "another run uses this state", remedy).into());
            }
            Err(TryLockError::Error(source)) => return Err(failed(source).into()),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|source| Error::io("read", path, source))?;
        let head = format!(
            "{}\n",
            json!({"greenmark_calibration": 1, "fingerprint": calibration.fingerprint()})
        );
        let mut state = Self { path: path.to_path_buf(), file };
        if head.as_bytes().starts_with(&bytes) {
            state.cut(0)?;
            state.write(head.as_bytes())?;
            return Ok((state, Vec::new()));
        }
        let Some(lines) = bytes.strip_prefix(head.as_bytes()) else {
            let problem = if bytes.starts_with(b"{\"greenmark_calibration\":") {
                "the state of a calibration with other texts, flags or keys"
            } else {
                "not the state of a calibration"
            };
            return Err(Error::file(path, None, problem, OTHER).into());
        };
        let (blocks, whole) = read_blocks(path, lines, head.len(), calibration)?;
        state.cut(whole as u64)?;
        Ok((state, blocks))
    }

    /// Adds a block; when this returns it survives a crash.
    pub(super) fn append(&mut self, block: &Block) -> Result<()> {
        let block = serde_json::to_string(block).context("cannot write a block as JSON")?;
        self.write(format!("{} {block}\n", checksum(&block)).as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .and_then(|()| self.file.sync_data())
            .map_err(|source| Error::io("write", &self.path, source).into())
    }

    /// Cuts the file to `length` bytes and goes on there.
    fn cut(&mut self, length: u64) -> Result<()> {
        self.file
            .set_len(length)
            .and_then(|()| self.file.seek(SeekFrom::Start(length)))
            .map(drop)
            .map_err(|source| Error::io("write", &self.path, source).into())
    }
}

/// What stands before a block: a disk that loses a digit is not to change a published rate.
fn checksum(block: &str) -> String {
    let mut digits = sha256_hex(block.as_bytes());
    digits.truncate(16);
    digits
}

/// The block of a line, if the line is whole.
fn stored(line: &[u8]) -> Option<Block> {
    let (digits, block) = std::str::from_utf8(line).ok()?.trim_end().split_once(' ')?;
    (digits == checksum(block)).then(|| serde_json::from_str(block).ok())?
}

/// The blocks of `lines`, which start at byte `start` of the file, and where the last whole line
/// ends.
fn read_blocks(
    path: &Path,
    lines: &[u8],
    start: usize,
    calibration: &Calibration,
) -> Result<(Vec<Block>, usize), Error> {
    let mut blocks = BTreeMap::new();
    let mut at = start;
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        if !line.ends_with(b"\n") {
            break;
        }
        let Some(block) = stored(line).filter(|block| calibration.accepts(block)) else {
            return Err(Error::file(path, at as u64, "a damaged block", OTHER));
        };
        blocks.insert(block.index, block);
        at += line.len();
    }
    Ok((blocks.into_values().collect(), at))
}
