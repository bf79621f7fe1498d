//! What a caller may write where a model is asked for, and how it is told apart.

use std::fmt;
use std::path::{Path, PathBuf};

use super::table::{Entry, Table, is_member, is_repo};
use crate::error::{Error, Result};

/// A model, told apart but not yet found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelSpec {
    /// A model of the table, by name or alias.
    Named(Box<Entry>),
    /// A GGUF file, a `tokenizer.json` or a safetensors folder that exists.
    Path(PathBuf),
    /// A repository of the model hub, or one file of it.
    Hub {
        /// `org/repo`.
        repo: String,
        /// The file's path in the repository; the whole model without it.
        file: Option<String>,
    },
}

impl fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(entry) => f.write_str(&entry.name),
            Self::Path(path) => path.display().fmt(f),
            Self::Hub { repo, file: None } => f.write_str(repo),
            Self::Hub { repo, file: Some(file) } => write!(f, "{repo}:{file}"),
        }
    }
}

impl ModelSpec {
    /// Tells `text` apart, by these rules in order:
    ///
    /// 1. A path that exists is that path. The one exception: a folder without `config.json`
    ///    whose name is also a name of the table is not taken for a model.
    /// 2. A name or alias of the table is that model.
    /// 3. Text that can only be a path (absolute, or beginning with `.` or `~`, or with a
    ///    backslash, or a bare file name ending in `.gguf`, `.safetensors` or `.json`) is a path
    ///    that is missing: an error.
    /// 4. `org/repo` and `org/repo:file` are a repository of the model hub.
    /// 5. Everything else is an error that lists what was tried.
    ///
    /// # Errors
    /// [`Error::Parameter`] with the text, what was tried and the names of the table.
    pub fn parse(text: &str, table: &Table) -> Result<Self> {
        let path = Path::new(text);
        let named = table.find(text);
        if path.exists() && (named.is_none() || path.is_file() || is_model_folder(path)) {
            return Ok(Self::Path(path.to_path_buf()));
        }
        if let Some(entry) = named {
            return Ok(Self::Named(Box::new(entry.clone())));
        }
        if is_only_a_path(text) {
            return Err(refused(text, "no such file or folder", table));
        }
        let (repo, file) = match text.split_once(':') {
            Some((repo, file)) => (repo, Some(file)),
            None => (text, None),
        };
        if is_repo(repo) && file.is_none_or(is_member) {
            return Ok(Self::Hub { repo: repo.to_owned(), file: file.map(str::to_owned) });
        }
        Err(refused(
            text,
            "no such file or folder, no name of the table, and not of the form org/repo[:file]",
            table,
        ))
    }
}

fn is_model_folder(path: &Path) -> bool {
    path.join("config.json").is_file()
}

fn is_only_a_path(text: &str) -> bool {
    let bare_file = !text.contains('/')
        && Path::new(text).extension().is_some_and(|ending| {
            ["gguf", "safetensors", "json"].iter().any(|known| ending.eq_ignore_ascii_case(known))
        });
    Path::new(text).is_absolute()
        || text.starts_with(['.', '~'])
        || text.contains('\\')
        || bare_file
}

fn refused(text: &str, tried: &str, table: &Table) -> Error {
    Error::parameter(
        "model",
        format!("{text:?} ({tried})"),
        format!(
            "a name of the table ({}), an existing GGUF file or safetensors folder, \
             or org/repo[:file] of the model hub",
            table.names()
        ),
    )
}
