//! The file of API keys: who has one, with which role, since when and until when. It holds hashes,
//! never a key.
//!
//! It is written whole beside its place and renamed there, under a lock that every writer takes,
//! so that a reader never meets half a file and no change is lost. A killed writer leaves at most
//! its unfinished copy, which the next one removes.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::key::{ApiKey, KeyHash};
use super::moment::Moment;
use super::role::Role;
use crate::error::{Error, Result};
use crate::prf::refuse_shared;
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
        let failed = |source| Error::io("read the API keys in", path, source);
        let metadata = fs::metadata(path).map_err(failed)?;
        refuse_shared("file of API keys", path, &metadata)?;
        let damaged = |problem: String| Error::file(path, None, problem, REMEDY);
        if !metadata.is_file() || metadata.len() > MAX_BYTES {
            return Err(damaged("not a file of API keys".to_owned()));
        }
        let bytes = fs::read(path).map_err(failed)?;
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
        let lock = self.lock()?;
        let mut keys = if self.0.exists() { self.read()? } else { Vec::new() };
        if keys.iter().any(|key| key.name == name) {
            let allowed = "a name that no key has or had, because logs tell keys by their names";
            return Err(Error::parameter("API key name", format!("{name} twice"), allowed));
        }
        let key = ApiKey::generate()?;
        let (name, sha256) = (name.to_owned(), key.hash());
        keys.push(StoredKey { name, role, sha256, created, expires, revoked: None });
        self.write(keys, &lock)?;
        Ok(key)
    }

    /// Takes a key back; gives when that happened, which may be before.
    ///
    /// # Errors
    /// [`Error::Parameter`] when there is no such key; [`Error::Io`] and [`Error::File`].
    pub fn revoke(&self, name: &str) -> Result<Moment> {
        let lock = self.lock()?;
        let mut keys = self.read()?;
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
        self.write(keys, &lock)?;
        Ok(now)
    }

    /// Waits until no other writer is at work. The system gives the lock back when the file is
    /// closed, also of a program that was killed.
    fn lock(&self) -> Result<File> {
        let path = self.beside(".lock");
        let failed = |source| Error::io("lock", &path, source);
        let file = private(OpenOptions::new().create(true).write(true).truncate(false))
            .open(&path)
            .map_err(failed)?;
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
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => {}
        }
        let mut file =
            private(OpenOptions::new().create_new(true).write(true)).open(&new).map_err(failed)?;
        file.write_all(&text).map_err(failed)?;
        self.keep_owner(&file).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        fs::rename(&new, &self.0).map_err(failed)?;
        sync_folder(&self.0).map_err(failed)
    }

    /// An administrator may add a key to a service that runs as another user, who must be able to
    /// read the file afterwards.
    #[cfg(unix)]
    fn keep_owner(&self, file: &File) -> std::io::Result<()> {
        use std::os::unix::fs::{MetadataExt, fchown};
        let Ok(old) = fs::metadata(&self.0) else { return Ok(()) };
        let new = file.metadata()?;
        if (old.uid(), old.gid()) == (new.uid(), new.gid()) {
            return Ok(());
        }
        fchown(file, Some(old.uid()), Some(old.gid()))
    }

    #[cfg(not(unix))]
    #[expect(clippy::unused_self, reason = "the twin of the function above")]
    fn keep_owner(&self, _file: &File) -> std::io::Result<()> {
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
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> std::io::Result<()> {
    Ok(())
}
