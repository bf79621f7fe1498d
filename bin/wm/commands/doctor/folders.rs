//! The folders of this user: the cache of models, and the configuration.

use std::fs;
use std::io;
use std::path::Path;

use greenmark::store::{State, Store};

use super::Check;
use crate::resolve::config_folder;

/// What stands at the path of a folder.
enum Folder {
    Writable,
    /// It is there, and nothing can be written to it.
    Locked(io::Error),
    /// It is not there, and can be made.
    Absent,
    /// It is not there and cannot be made, or something else is in its place.
    Impossible(String),
}

/// Where models are kept, how much room they take, and which they are.
pub(super) fn cache(store: &Store) -> Check {
    let name = "cache";
    let root = store.root();
    let remedy = "give it to this user, or set WM_CACHE to a folder with room for the models";
    let place = root.display();
    match look(root) {
        Folder::Impossible(problem) => Check::problem(name, problem, remedy),
        Folder::Absent => Check::ok(name, format!("{place}, made when a model is fetched")),
        Folder::Locked(error) => {
            Check::problem(name, format!("{place} cannot be written to: {error}"), remedy)
        }
        Folder::Writable => {
            let megabytes = size(root) as f64 / 1e6;
            let text = format!("{place}, {megabytes:.1} MB: {}", models(store));
            match store.list().into_iter().find(|row| row.state == State::Damaged) {
                None => Check::ok(name, text),
                Some(row) => Check::problem(
                    name,
                    format!("{text}; {} is damaged", row.path.display()),
                    format!("run: wm models pull {}", row.entry.name),
                ),
            }
        }
    }
}

/// Where keys are kept.
pub(super) fn configuration() -> Check {
    let name = "configuration";
    let Some(folder) = config_folder() else {
        let remedy = "set one of them, or name every key with --key-file";
        return Check::problem(name, "neither XDG_CONFIG_HOME nor a home folder is set", remedy);
    };
    let place = folder.display();
    match look(&folder) {
        Folder::Writable => Check::ok(name, place.to_string()),
        Folder::Absent => Check::ok(name, format!("{place}, made with the first key")),
        Folder::Locked(error) => {
            // As a service has it that was set up by its administrator.
            Check::note(name, format!("{place} cannot be written to, so no key is made: {error}"))
        }
        Folder::Impossible(problem) => {
            Check::problem(name, problem, "set XDG_CONFIG_HOME to a folder of this user")
        }
    }
}

fn look(path: &Path) -> Folder {
    let place = path.display();
    match path.metadata() {
        Ok(found) if !found.is_dir() => Folder::Impossible(format!("{place} is not a folder")),
        Ok(_) => match try_to_write(path) {
            Ok(()) => Folder::Writable,
            Err(error) => Folder::Locked(error),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let above = path.ancestors().skip(1).find(|above| above.exists());
            // The folder of a relative path of one part is the current one.
            let above = above.filter(|above| !above.as_os_str().is_empty());
            match try_to_write(above.unwrap_or(Path::new("."))) {
                Ok(()) => Folder::Absent,
                Err(error) => Folder::Impossible(format!("{place} cannot be made: {error}")),
            }
        }
        Err(error) => Folder::Impossible(format!("{place}: {error}")),
    }
}

/// Permissions alone do not tell: a file system may be read-only, a disk full.
fn try_to_write(folder: &Path) -> io::Result<()> {
    let file = tempfile::Builder::new().prefix(".wm-doctor-").tempfile_in(folder);
    // The error of the library names the file, which says nothing to the reader.
    file.map(drop).map_err(|error| error.kind().into())
}

/// Bytes of all files below a folder. Links are not followed, and what cannot be read counts
/// nothing.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()),
        Ok(found) if found.is_file() => found.len(),
        _ => 0,
    };
    entries.flatten().map(of).sum()
}

/// The models of the table that are there, and the repositories of the hub.
fn models(store: &Store) -> String {
    let listed = store.list().into_iter().filter(|row| row.state != State::Absent);
    let mut names: Vec<String> = listed.map(|row| row.entry.name).collect();
    let entries = fs::read_dir(store.root().join("hub"));
    let mut repositories: Vec<String> = entries
        .into_iter()
        .flatten()
        .flatten()
        // The hub's own clients name folders so.
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix("models--")?.to_owned()))
        .map(|name| name.replacen("--", "/", 1))
        .collect();
    repositories.sort();
    names.extend(repositories);
    if names.is_empty() { "no model".to_owned() } else { names.join(", ") }
}
