//! The one place where a file becomes a memory map.
//!
//! A map is read-only. It stays correct only while nobody shortens or rewrites the file: the
//! caches of this crate write a file under another name and rename it into place, which leaves
//! existing maps whole.
#![expect(unsafe_code, reason = "mapping a file is unsafe by nature")]

use std::fs::File;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The bytes of a file, mapped into memory and read on demand by the operating system.
#[derive(Debug)]
pub struct Map {
    /// `None` for an empty file, which cannot be mapped.
    map: Option<memmap2::Mmap>,
    path: PathBuf,
}

impl Map {
    /// Maps a regular file.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened or mapped, [`Error::File`] if it is no regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| Error::io("open", path, source))?;
        let metadata = file.metadata().map_err(|source| Error::io("read", path, source))?;
        if !metadata.is_file() {
            return Err(Error::file(
                path,
                None,
                "not a regular file",
                "give the path of the file itself",
            ));
        }
        let map = if metadata.len() == 0 {
            None
        } else {
            // SAFETY: the map is read-only and private to this type. The bytes change under us
            // only if another process rewrites the file in place, which the module head excludes;
            // every reader checks lengths against the map and treats its content as untrusted.
            Some(
                unsafe { memmap2::Mmap::map(&file) }
                    .map_err(|source| Error::io("map", path, source))?,
            )
        };
        Ok(Self { map, path: path.to_path_buf() })
    }

    /// The file that is mapped.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}
