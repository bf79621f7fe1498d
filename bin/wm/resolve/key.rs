//! Where the key comes from: a file that was named, or the user's own default key.

use std::path::{Path, PathBuf};

use greenmark::prf::Key;
use greenmark::profile::KeyIdentity;
use greenmark::server::KeyFile;
use greenmark::{Error, Result};

use crate::args::KeyArgs;
use crate::output::note;

/// A key and the name under which reports speak of it.
pub(crate) struct NamedKey {
    pub(crate) key: Key,
    /// From `--key-id`.
    explicit_id: Option<String>,
    /// From the file's name.
    file_id: String,
}

impl NamedKey {
    /// A key that comes from no file.
    pub(crate) fn new(key: Key, id: &str) -> Self {
        Self { key, explicit_id: None, file_id: id.to_owned() }
    }

    /// Its identity in a profile in which it is called `named` unless a flag says otherwise.
    pub(crate) fn identity(&self, named: Option<&str>) -> KeyIdentity {
        let id = self.explicit_id.as_deref().or(named).unwrap_or(&self.file_id).to_owned();
        KeyIdentity { id, fingerprint: self.key.fingerprint() }
    }
}

/// What to do when there is no default key yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeySource {
    /// Make one and say so (generation).
    CreateDefault,
    /// It is an error (detection: a fresh key can detect nothing).
    Existing,
}

/// The default key of this user: `$XDG_CONFIG_HOME/wm/key`, else `~/.config/wm/key`.
pub(crate) fn default_key_path() -> Result<PathBuf> {
    configured("key", "the default key", "name a key with --key-file")
}

/// The file of API keys that was named, or this user's own beside the default key; the second
/// value is whether it is the default one.
pub(crate) fn api_keys_file(named: Option<&Path>) -> Result<(KeyFile, bool)> {
    if let Some(path) = named {
        return Ok((KeyFile::new(path), false));
    }
    let what = "the default file of API keys";
    let path = configured("apikeys.json", what, "name a file with --keys-file")?;
    Ok((KeyFile::new(path), true))
}

/// The configuration folder of this user, which need not exist.
pub(crate) fn config_folder() -> Option<PathBuf> {
    std::env::var_os("XDG_CONFIG_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".config")))
        .map(|folder| folder.join("wm"))
}

/// A file in the configuration folder of this user.
fn configured(file: &str, what: &str, remedy: &str) -> Result<PathBuf> {
    config_folder().map(|folder| folder.join(file)).ok_or_else(|| Error::Unavailable {
        what: what.to_owned(),
        reason: "neither XDG_CONFIG_HOME nor a home folder is set".to_owned(),
        remedy: remedy.to_owned(),
    })
}

/// Reads the key that the flags name.
pub(crate) fn resolve_key(args: &KeyArgs, source: KeySource) -> Result<NamedKey> {
    let (key, default_id) = match &args.key_file {
        Some(path) => (Key::read(path)?, file_id(path)),
        None => (default_key(source)?, "default".to_owned()),
    };
    Ok(NamedKey { key, explicit_id: args.key_id.clone(), file_id: default_id })
}

fn file_id(path: &Path) -> String {
    path.file_stem().map_or_else(|| "key".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

fn default_key(source: KeySource) -> Result<Key> {
    let path = default_key_path()?;
    if path.exists() {
        return Key::read(&path);
    }
    if source == KeySource::Existing {
        return Err(Error::file(
            &path,
            None,
            "there is no default key yet",
            "name the key the text was marked with: --key-file FILE",
        ));
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))?;
    }
    let key = Key::generate()?;
    match key.write_new(&path) {
        Ok(()) => {
            note!("made a key for this user at {}; keep it secret and safe", path.display());
            Ok(key)
        }
        // Another run made it between the two looks.
        Err(_) if path.exists() => Key::read(&path),
        Err(error) => Err(error),
    }
}
