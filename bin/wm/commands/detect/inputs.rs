//! The inputs of a detection: named files, the files of folders, standard input.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::Result;
use greenmark::Error;

use crate::args::DetectArgs;
use crate::resolve::read_input;

/// One text to judge.
pub(super) enum Input {
    /// A file that was named itself.
    File(PathBuf),
    /// A file of a folder that was named.
    Member(PathBuf),
    /// A folder that gives no text, with the reason.
    Folder(PathBuf, String),
    /// Standard input.
    Stdin,
}

impl Input {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Member(path) | Self::Folder(path, _) => path,
            Self::Stdin => Path::new("-"),
        }
    }

    pub(super) fn read(&self) -> Result<Vec<u8>, Error> {
        match self {
            Self::Folder(path, problem) => {
                let remedy =
                    "name a folder with text files; hidden files and sidecars are left out";
                Err(Error::file(path, None, problem.as_str(), remedy))
            }
            Self::File(_) | Self::Member(_) | Self::Stdin => read_input(self.path()),
        }
    }
}

/// Refuses to read two things from standard input, of which the second would be empty.
pub(super) fn standard_input_once(args: &DetectArgs) -> Result<(), Error> {
    let is_stdin = |path: &&PathBuf| path.as_os_str() == "-";
    let texts = args.paths.iter().filter(is_stdin).count();
    let silent = usize::from(args.paths.is_empty() && args.ids.is_none());
    let others = [&args.ids, &args.prompt_file].into_iter().flatten().filter(is_stdin).count();
    if texts + silent + others > 1 {
        return Err(Error::parameter(
            "-",
            "twice",
            "standard input once: name a file for the other",
        ));
    }
    Ok(())
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
            walk(path, &mut inputs);
            if inputs.len() == before {
                inputs
                    .push(Input::Folder(path.clone(), "the folder holds no text file".to_owned()));
            }
        } else {
            inputs.push(Input::File(path.clone()));
        }
    }
    Ok(inputs)
}

/// Every file below `folder` in the order of names, without hidden files and sidecars. A link to
/// a file is that file; links to folders are not followed, since they may lead back.
fn walk(folder: &Path, inputs: &mut Vec<Input>) {
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => {
            inputs.push(Input::Folder(folder.to_path_buf(), format!("cannot be listed: {error}")));
            return;
        }
    };
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        if name.starts_with('.') || name.ends_with(".wm.json") {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&path, inputs);
        } else if path.metadata().map_or(true, |target| target.is_file()) {
            // A broken link is named when it is read; pipes and devices hold no text.
            inputs.push(Input::Member(path));
        }
    }
}
