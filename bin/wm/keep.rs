//! What a run reads is never what it writes over: a slip of the hand is not to cost a key, a text
//! or a profile.

use std::path::{Path, PathBuf};

use greenmark::Error;
use greenmark::document::sidecar_path;

use crate::args::{KeyArgs, MarkArgs};
use crate::resolve::default_key_path;

/// The files that a run reads.
#[derive(Default)]
pub(crate) struct Reads(Vec<PathBuf>);

impl Reads {
    /// Texts or folders with texts, and their sidecars.
    pub(crate) fn texts<'a>(mut self, paths: impl IntoIterator<Item = &'a PathBuf>) -> Self {
        for path in paths {
            self.0.push(sidecar_path(path));
            self.0.push(path.clone());
        }
        self
    }

    /// Any other files.
    pub(crate) fn files<'a>(mut self, paths: impl IntoIterator<Item = &'a PathBuf>) -> Self {
        self.0.extend(paths.into_iter().cloned());
        self
    }

    /// Key and profile; also the default key, which is never a place for anything else.
    pub(crate) fn mark(mut self, mark: &MarkArgs, key: &KeyArgs) -> Self {
        self.0.extend(mark.profile.iter().chain(&key.key_file).cloned());
        self.0.extend(default_key_path().ok());
        self
    }

    /// Refuses a `target` of the flag `name` that is one of the files, by whatever path or link,
    /// or that stands in one of the folders. A file that is not there yet replaces nothing.
    pub(crate) fn spare(&self, name: &'static str, target: &Path) -> Result<(), Error> {
        let Ok(place) = target.canonicalize() else { return Ok(()) };
        let same = |read: &PathBuf| {
            read.canonicalize().is_ok_and(|read| place.starts_with(&read))
                || is_same_file(read, target)
        };
        if self.0.iter().any(same) {
            let allowed = "a file that this run does not read: what is read is not written over";
            return Err(Error::parameter(name, target.display(), allowed));
        }
        Ok(())
    }
}

/// Whether two paths are one file through a hard link.
#[cfg(unix)]
fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

#[cfg(not(unix))]
fn is_same_file(_one: &Path, _other: &Path) -> bool {
    false
}
