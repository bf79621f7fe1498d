//! The inputs of a detection: named files, the files of folders, standard input.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::Result;
use greenmark::Error;

use crate::resolve::read_input;

/// One text to judge.
pub(super) enum Input {
    /// A file that was named itself.
    File(PathBuf),
    /// A file of a folder that was named.
    Member(PathBuf),
    /// Standard input.
    Stdin,
}

impl Input {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Member(path) => path,
            Self::Stdin => Path::new("-"),
        }
    }

    pub(super) fn name(&self) -> PathBuf {
        self.path().to_path_buf()
    }

    pub(super) fn read(&self) -> Result<Vec<u8>, Error> {
        read_input(self.path())
    }
}

/// The inputs that `paths` name; standard input when there are none.
pub(super) fn expand(paths: &[PathBuf]) -> Result<Vec<Input>, Error> {
    if paths.is_empty() {
        if std::io::stdin().is_terminal() {
            return Err(Error::parameter(
                "PATH",
                "nothing",
                "a text file, a folder, or a text on standard input",
            ));
        }
        return Ok(vec![Input::Stdin]);
    }
    let mut inputs = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            inputs.push(Input::Stdin);
        } else if path.is_dir() {
            let before = inputs.len();
            walk(path, &mut inputs)?;
            if inputs.len() == before {
                return Err(Error::file(
                    path,
                    None,
                    "the folder holds no text file",
                    "name a folder with text files; hidden files and sidecars are left out",
                ));
            }
        } else {
            inputs.push(Input::File(path.clone()));
        }
    }
    Ok(inputs)
}

/// Every file below `folder` in the order of names, without hidden files and sidecars.
fn walk(folder: &Path, inputs: &mut Vec<Input>) -> Result<(), Error> {
    let failed = |source| Error::io("list", folder, source);
    let mut entries = std::fs::read_dir(folder)
        .map_err(failed)?
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || name.ends_with(".wm.json") {
            continue;
        }
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            walk(&entry.path(), inputs)?;
        } else if kind.is_file() {
            inputs.push(Input::Member(entry.path()));
        }
    }
    Ok(())
}
