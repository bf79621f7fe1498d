//! A file that lines are appended to. It is opened again when it was renamed, as tools that rotate
//! logs do, without a signal.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::server::access::{inode, private};

/// Time between two looks at whether the file is still the one at its path.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    inode: u64,
    looked: Instant,
    /// Whether the last line was cut off, so that the next one must not be glued to it.
    cut: bool,
}

impl LogFile {
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = private(options.create(true).append(true).read(true)).open(path)?;
        let metadata = file.metadata()?;
        let cut = metadata.is_file() && metadata.len() > 0 && !ends_whole(&file)?;
        let (path, inode) = (path.to_path_buf(), inode(&metadata));
        Ok(Self { path, file, inode, looked: Instant::now(), cut })
    }

    pub(super) fn append(&mut self, line: &[u8]) -> std::io::Result<()> {
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
