//! The files below a folder in the order of names, with memory that does not grow with the folder.

use std::collections::{BinaryHeap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Names of one folder that are held at a time. A larger folder is listed again for the next ones.
const HELD: usize = 1 << 16;

/// What a walk finds.
pub(super) enum Found {
    File(PathBuf),
    /// A folder that could not be listed.
    Unlisted(PathBuf, io::Error),
}

/// Every file below a folder, without hidden files and sidecars. A link to a file is that file;
/// links to folders are not followed, since they may lead back.
pub(super) struct Walk {
    /// From the outermost folder to the one that is being read.
    levels: Vec<Level>,
    held: usize,
}

struct Level {
    folder: PathBuf,
    /// The next names, and whether each is a folder.
    names: VecDeque<(OsString, bool)>,
    /// The last name that was taken.
    last: Option<OsString>,
    /// Whether names behind the held ones may be left.
    more: bool,
}

impl Walk {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self::holding(folder, HELD)
    }

    fn holding(folder: PathBuf, held: usize) -> Self {
        Self { levels: vec![Level::new(folder)], held }
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let level = self.levels.last_mut()?;
            if level.names.is_empty()
                && level.more
                && let Err(error) = level.list(self.held)
            {
                let folder = std::mem::take(&mut level.folder);
                self.levels.pop();
                return Some(Found::Unlisted(folder, error));
            }
            let Some((name, is_folder)) = level.names.pop_front() else {
                self.levels.pop();
                continue;
            };
            let path = level.folder.join(&name);
            level.last = Some(name);
            if is_folder {
                self.levels.push(Level::new(path));
            } else if path.metadata().map_or(true, |target| target.is_file()) {
                // A broken link is named when it is read; pipes and devices hold no text.
                return Some(Found::File(path));
            }
        }
    }
}

impl Level {
    fn new(folder: PathBuf) -> Self {
        Self { folder, names: VecDeque::new(), last: None, more: true }
    }

    /// Takes the first `held` names behind the last one.
    fn list(&mut self, held: usize) -> io::Result<()> {
        let mut first: BinaryHeap<(OsString, bool)> = BinaryHeap::new();
        self.more = false;
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if self.last.as_ref().is_some_and(|last| name <= *last) || is_left_out(&name) {
                continue;
            }
            first.push((name, entry.file_type().is_ok_and(|kind| kind.is_dir())));
            if first.len() > held {
                first.pop();
                self.more = true;
            }
        }
        self.names = first.into_sorted_vec().into();
        Ok(())
    }
}

/// Hidden files and sidecars.
fn is_left_out(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    name.starts_with('.') || name.ends_with(".wm.json")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::fs;

    use super::*;

    #[test]
    fn a_folder_is_read_in_the_order_of_names_however_few_are_held() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["a", "b/c", "b/d/e", "b/f", "g", "h", "i/j", "k.wm.json", "l/.m", ".n", "o"];
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        for held in [1, 2, 3, 100] {
            let found: Vec<String> = Walk::holding(folder.path().to_path_buf(), held)
                .map(|found| match found {
                    Found::File(path) => {
                        path.strip_prefix(folder.path()).unwrap().display().to_string()
                    }
                    Found::Unlisted(path, error) => panic!("{}: {error}", path.display()),
                })
                .collect();
            assert_eq!(found, ["a", "b/c", "b/d/e", "b/f", "g", "h", "i/j", "o"], "{held} held");
        }
    }
}
