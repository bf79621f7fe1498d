//! The file of API keys: who has one, with which role, since when and until when. It holds hashes,
//! never a key.
//!
//! It is written whole beside its place and renamed there, under a lock that every writer takes,
//! so that a reader never meets half a file and no change is lost. A killed writer leaves at most
//! its unfinished copy, which the next one removes. A link is followed: the file that it names is
//! replaced, not the link.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::key::{ApiKey, KeyHash};
use super::moment::Moment;
use super::role::Role;
use crate::error::{Error, Result};
use crate::prf::open_private;
use crate::server::profiles::check_name;

const VERSION: u32 = 1;
const REMEDY: &str = "restore it from a copy, or move it away and add keys with `wm apikey add`";

/// Bytes of the longest file that is read: some hundred thousand keys.
const MAX_BYTES: u64 = 64 << 20;

/// One API key, as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredKey {
    /// The name in logs; each once, also after the key was revoked.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// SHA-256 of a tag and the key.
    sha256: KeyHash,
    /// When it was added.
    pub created: Moment,
    /// From when on it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Moment>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Moment>,
}

/// Whether a key opens anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyStatus {
    /// It does.
    Active,
    /// Its time is over.
    Expired,
    /// It was taken back.
    Revoked,
}

impl StoredKey {
    /// Whether it opens anything at that moment.
    #[must_use]
    pub fn status(&self, at: Moment) -> KeyStatus {
        if self.revoked.is_some() {
            KeyStatus::Revoked
        } else if self.expires.is_some_and(|expires| expires <= at) {
            KeyStatus::Expired
        } else {
            KeyStatus::Active
        }
    }

    pub(super) fn hash(&self) -> &KeyHash {
        &self.sha256
    }
}

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    keys: Vec<StoredKey>,
}

/// A file of API keys, by its path. Nothing is held between calls.
#[derive(Clone, Debug)]
pub struct KeyFile(PathBuf);

impl KeyFile {
    /// The file at `path`, which need not exist yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads all keys, revoked ones too.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read, [`Error::File`] when others may read or write it or
    /// its content is damaged.
    pub fn read(&self) -> Result<Vec<StoredKey>> {
        let path = &self.0;
        let action = "read the API keys in";
        let file = open_private("file of API keys", action, path, REMEDY)?;
        let damaged = |problem: String| Error::file(path, None, problem, REMEDY);
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|source| Error::io(action, path, source))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(damaged(format!("over {MAX_BYTES} bytes are no file of API keys")));
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(damaged("the file of API keys is empty".to_owned()));
        }
        let content: Content = serde_json::from_slice(&bytes)
            .map_err(|error| damaged(format!("not a file of API keys: {error}")))?;
        if content.version != VERSION {
            return Err(damaged(format!(
                "version {} of the file of API keys; this program knows {VERSION}",
                content.version
            )));
        }
        let mut names = std::collections::HashSet::new();
        for key in &content.keys {
            let checked = check_key_name(&key.name);
            checked.map_err(|error| damaged(format!("not a file of API keys: {error}")))?;
            if !names.insert(key.name.as_str()) {
                return Err(damaged(format!("two API keys with the name {}", key.name)));
            }
        }
        Ok(content.keys)
    }

    /// Adds a fresh key and gives it: the only time that it can be seen.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a name that is not plain or was used before, or a date that is
    /// past; [`Error::Io`] and [`Error::File`] for the file.
    pub fn add(&self, name: &str, role: Role, expires: Option<Moment>) -> Result<ApiKey> {
        check_key_name(name)?;
        let created = Moment::now();
        if let Some(expires) = expires.filter(|expires| *expires <= created) {
            return Err(Error::parameter("expires", expires, "a moment to come"));
        }
        let place = self.place()?;
        let lock = place.lock()?;
        // A file that is there and cannot be looked at holds keys all the same.
        let mut keys = if place.exists()? { place.read()? } else { Vec::new() };
        if keys.iter().any(|key| key.name == name) {
            let allowed = "a name that no key has or had, because logs tell keys by their names";
            return Err(Error::parameter("API key name", format!("{name} twice"), allowed));
        }
        let key = ApiKey::generate()?;
        let (name, sha256) = (name.to_owned(), key.hash());
        keys.push(StoredKey { name, role, sha256, created, expires, revoked: None });
        place.write(keys, &lock)?;
        Ok(key)
    }

    /// Takes a key back; gives when that happened, which may be before.
    ///
    /// # Errors
    /// [`Error::Parameter`] when there is no such key; [`Error::Io`] and [`Error::File`].
    pub fn revoke(&self, name: &str) -> Result<Moment> {
        let place = self.place()?;
        let lock = place.lock()?;
        let mut keys = place.read()?;
        let Some(key) = keys.iter_mut().find(|key| key.name == name) else {
            let path = self.0.display();
            let allowed = format!("a name that `wm apikey list` shows for {path}");
            return Err(Error::parameter("API key name", name.escape_debug(), allowed));
        };
        if let Some(before) = key.revoked {
            return Ok(before);
        }
        let now = Moment::now();
        key.revoked = Some(now);
        place.write(keys, &lock)?;
        Ok(now)
    }

    /// Whether there is such a file, or a link of this name.
    ///
    /// # Errors
    /// [`Error::Io`] when the system does not say so.
    pub fn exists(&self) -> Result<bool> {
        match fs::symlink_metadata(&self.0) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io("look for the API keys in", &self.0, error)),
        }
    }

    /// The file itself where the path is a link.
    fn place(&self) -> Result<Self> {
        // A new file under a link that leads nowhere would hide the one that should be there, on
        // a disk that is not mounted for example.
        if self.exists()? {
            let remedy = "make the link lead to the file of API keys, or remove it";
            return fs::canonicalize(&self.0).map(Self).map_err(|error| {
                Error::file(&self.0, None, format!("cannot follow the link: {error}"), remedy)
            });
        }
        Ok(self.clone())
    }

    /// Waits until no other writer is at work. The system gives the lock back when the file is
    /// closed, also of a program that was killed.
    fn lock(&self) -> Result<File> {
        let path = self.beside(".lock");
        let failed = |source| Error::io("lock", &path, source);
        let file = match private(OpenOptions::new().create_new(true).write(true)).open(&path) {
            // Only a lock made here is given away, never what somebody's link leads to.
            Ok(file) => self.give(&file).map(|()| file),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                OpenOptions::new().write(true).open(&path)
            }
            Err(error) => Err(error),
        };
        let file = file.map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    }

    fn write(&self, keys: Vec<StoredKey>, _lock: &File) -> Result<()> {
        let failed = |source| Error::io("write the API keys to", &self.0, source);
        let mut text = serde_json::to_vec_pretty(&Content { version: VERSION, keys })
            .map_err(|error| Error::backend("writing the API keys as JSON", error))?;
        text.push(b'\n');
        let new = self.beside(".new");
        match fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => {}
        }
        let mut file =
            private(OpenOptions::new().create_new(true).write(true)).open(&new).map_err(failed)?;
        file.write_all(&text).map_err(failed)?;
        self.give(&file).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        fs::rename(&new, &self.0).map_err(failed)?;
        sync_folder(&self.0).map_err(failed)
    }

    /// Gives a new file to the owner of the one before. An administrator may add a key to a
    /// service that runs as another user, who must be able to read the file afterwards. The first
    /// file that the administrator (user 0) makes goes to the owner of its folder.
    #[cfg(unix)]
    fn give(&self, file: &File) -> std::io::Result<()> {
        use std::os::unix::fs::{MetadataExt, fchown};
        let new = file.metadata()?;
        let old = match fs::metadata(&self.0) {
            Ok(old) => old,
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Err(_) if new.uid() != 0 => return Ok(()),
            Err(_) => fs::metadata(folder(&self.0))?,
        };
        if (old.uid(), old.gid()) == (new.uid(), new.gid()) {
            return Ok(());
        }
        fchown(file, Some(old.uid()), Some(old.gid()))
    }

    #[cfg(not(unix))]
    #[expect(clippy::unused_self, reason = "the twin of the function above")]
    fn give(&self, _file: &File) -> std::io::Result<()> {
        Ok(())
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.0.as_os_str().to_owned();
        name.push(ending);
        name.into()
    }
}

fn check_key_name(name: &str) -> Result<()> {
    // `local` is the caller of a service without keys.
    check_name("API key name", name, "local")
}

/// With mode 0600 where there are modes.
pub(in crate::server) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// A rename lasts through a power cut once its folder is on the disk.
#[cfg(unix)]
fn sync_folder(path: &Path) -> std::io::Result<()> {
    File::open(folder(path))?.sync_all()
}

#[cfg(unix)]
fn folder(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> std::io::Result<()> {
    Ok(())
}
