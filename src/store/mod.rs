//! Finds a model's files: by name, by path, or in a repository of the model hub, and fetches
//! what is missing into a cache.
//!
//! For whoever needs a path, the engine and the detector alike. A file is given out only when
//! its size and SHA-256 are the table's; nothing interrupted or corrupt is ever used. The module
//! reads no model file's content, prints nothing (see [`Progress`]), and knows no candle.
//!
//! The cache is `<root>/<name>/<file>`, each file with a stamp `<file>.verified` that holds the
//! SHA-256, size and modification time of the last full check; `<root>/hub` belongs to the hub
//! client; `<root>/.pull-*` are downloads under way. `docs/models.md` tells the user's side.

mod progress;
mod pull;
mod spec;
mod table;
mod verify;

#[cfg(feature = "hub")]
mod hub;
#[cfg(not(feature = "hub"))]
#[path = "hub_absent.rs"]
mod hub;
mod pip;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use secrecy::SecretString;

pub use progress::{Event, Fetch, Progress, Silent};
pub use spec::ModelSpec;
pub use table::{Entry, Source, Table};

use crate::error::{Error, Result};
use pull::Trust;

/// A cache of model files, a table of known models, and the ways to fetch one.
pub struct Store {
    root: PathBuf,
    table: Table,
    pip: Vec<pip::Program>,
    hub_endpoint: Option<String>,
    hub_token: Option<SecretString>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("root", &self.root).finish_non_exhaustive()
    }
}

/// What is in the cache for one model of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Nothing.
    Absent,
    /// A file of the right size. [`Store::resolve`] checks its SHA-256 if that was not done yet.
    Present,
    /// A file of another size, or one whose last check gave another SHA-256.
    Damaged,
}

/// One line of [`Store::list`].
#[derive(Clone, Debug)]
pub struct Listed {
    /// The model.
    pub entry: Entry,
    /// What the cache holds.
    pub state: State,
    /// Where its file is or would be.
    pub path: PathBuf,
}

/// The cache folder that an environment asks for: `WM_CACHE`, else `XDG_CACHE_HOME` followed by
/// `wm`, else `.cache/wm` in the home folder. Empty variables count as unset, and so does an
/// `XDG_CACHE_HOME` that is not absolute, as the XDG specification asks.
///
/// # Errors
/// [`Error::Unavailable`] if none of them names a folder.
pub fn cache_root(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(root) = set("WM_CACHE") {
        return Ok(root);
    }
    if let Some(cache) = set("XDG_CACHE_HOME").filter(|path| path.is_absolute()) {
        return Ok(cache.join("wm"));
    }
    if let Some(home) = set("HOME").or_else(|| set("USERPROFILE")) {
        return Ok(home.join(".cache").join("wm"));
    }
    Err(Error::Unavailable {
        what: "the model cache".to_owned(),
        reason: "none of WM_CACHE, XDG_CACHE_HOME and HOME is set".to_owned(),
        remedy: "set WM_CACHE to a folder with room for the models".to_owned(),
    })
}

impl Store {
    /// The store that the environment asks for: the folder of [`cache_root`], the shipped table,
    /// `WM_PIP` (a command line split at white space) in place of the usual pips, `HF_ENDPOINT`
    /// in place of the hub's own address, and `HF_TOKEN` for its gated repositories.
    ///
    /// # Errors
    /// As [`cache_root`]. The folder is not created before something is fetched.
    pub fn from_env() -> Result<Self> {
        let mut store = Self::at(cache_root(|name| std::env::var_os(name))?)?;
        if let Some(command) = std::env::var_os("WM_PIP") {
            store = store.with_pip(&command);
        }
        let text = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        store.hub_endpoint = text("HF_ENDPOINT");
        store.hub_token = text("HF_TOKEN").map(SecretString::from);
        Ok(store)
    }

    /// A store in the folder `root` with the shipped table, without a look at the environment.
    ///
    /// # Errors
    /// As [`Table::built_in`].
    pub fn at(root: impl Into<PathBuf>) -> Result<Self> {
        Ok(Self {
            root: root.into(),
            table: Table::built_in()?,
            pip: pip::usual_programs(),
            hub_endpoint: None,
            hub_token: None,
        })
    }

    /// With another table.
    #[must_use]
    pub fn with_table(mut self, table: Table) -> Self {
        self.table = table;
        self
    }

    /// With one pip: a command line split at white space. Empty text keeps the usual ones.
    #[must_use]
    pub fn with_pip(mut self, command: impl AsRef<OsStr>) -> Self {
        if let Some(program) = pip::split_program(command.as_ref()) {
            self.pip = vec![program];
        }
        self
    }

    /// With another address of the model hub, for example a mirror.
    #[must_use]
    pub fn with_hub_endpoint(mut self, address: impl Into<String>) -> Self {
        self.hub_endpoint = Some(address.into());
        self
    }

    /// The cache folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The table of known models.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Where a model's file is or would be.
    #[must_use]
    pub fn path_of(&self, entry: &Entry) -> PathBuf {
        self.root.join(&entry.name).join(&entry.file)
    }

    /// The path of a model: a GGUF file or a safetensors folder.
    ///
    /// `spec` is a name or alias of the table, an existing path, or `org/repo[:file]`, told
    /// apart by the rules of [`ModelSpec::parse`]. An existing path is given back as it is; its
    /// content is the engine's to judge. A cached file of the table is given back after a look
    /// at its size and its stamp; without a stamp that fits, its SHA-256 is computed.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a `spec` that is none of these, [`Error::Unavailable`] with the
    /// commands to run by hand when nothing could be fetched or nothing may be, [`Error::Io`]
    /// for a cache that cannot be read or written.
    pub fn resolve(
        &self,
        spec: &str,
        fetch: Fetch,
        progress: &mut dyn Progress,
    ) -> Result<PathBuf> {
        self.resolve_spec(&ModelSpec::parse(spec, &self.table)?, fetch, progress)
    }

    /// [`Store::resolve`] for a model that is told apart already.
    ///
    /// # Errors
    /// As [`Store::resolve`].
    pub fn resolve_spec(
        &self,
        spec: &ModelSpec,
        fetch: Fetch,
        progress: &mut dyn Progress,
    ) -> Result<PathBuf> {
        match spec {
            ModelSpec::Path(path) => Ok(path.clone()),
            ModelSpec::Named(entry) => pull::entry(self, entry, fetch, Trust::Stamp, progress),
            ModelSpec::Hub { repo, file: Some(file) } => {
                hub::file(self, repo, file, fetch, progress)
            }
            ModelSpec::Hub { repo, file: None } => hub::model(self, repo, fetch, progress),
        }
    }

    /// The path of a tokenizer: a `tokenizer.json`, or a GGUF file that holds one.
    ///
    /// Takes what [`Store::resolve`] takes. A folder stands for its `tokenizer.json`, `org/repo`
    /// for the repository's `tokenizer.json`, which alone is fetched.
    ///
    /// # Errors
    /// As [`Store::resolve`]; [`Error::File`] for a folder without `tokenizer.json`.
    pub fn resolve_tokenizer(
        &self,
        spec: &str,
        fetch: Fetch,
        progress: &mut dyn Progress,
    ) -> Result<PathBuf> {
        match ModelSpec::parse(spec, &self.table)? {
            ModelSpec::Path(folder) if folder.is_dir() => {
                let path = folder.join("tokenizer.json");
                if path.is_file() {
                    return Ok(path);
                }
                Err(Error::file(
                    folder,
                    None,
                    "the folder holds no tokenizer.json",
                    "give a tokenizer.json, a GGUF file, or a folder that holds the former",
                ))
            }
            ModelSpec::Hub { repo, file: None } => {
                hub::file(self, &repo, "tokenizer.json", fetch, progress)
            }
            spec => self.resolve_spec(&spec, fetch, progress),
        }
    }

    /// Fetches a model unless it is there, and checks its SHA-256 in full either way.
    ///
    /// # Errors
    /// As [`Store::resolve`].
    pub fn pull(&self, spec: &str, progress: &mut dyn Progress) -> Result<PathBuf> {
        match ModelSpec::parse(spec, &self.table)? {
            ModelSpec::Named(entry) => {
                pull::entry(self, &entry, Fetch::Allowed, Trust::Nothing, progress)
            }
            spec => self.resolve_spec(&spec, Fetch::Allowed, progress),
        }
    }

    /// The models of the table and what the cache holds of each. Hashes nothing.
    #[must_use]
    pub fn list(&self) -> Vec<Listed> {
        let listed = |entry: &Entry| {
            let path = self.path_of(entry);
            Listed { entry: entry.clone(), state: pull::state(entry, &path), path }
        };
        self.table.entries().iter().map(listed).collect()
    }
}
