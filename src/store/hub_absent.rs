//! The model hub in a build without the feature `hub`: every request says so.

use std::path::{Path, PathBuf};

use super::Store;
use super::progress::{Fetch, Progress};
use crate::error::{Error, Result};

const REMEDY: &str =
    "build with the feature `hub`, or download the files by hand and give their path";

pub(super) fn fetch_file(
    _store: &Store,
    _repo: &str,
    _file: &str,
    _folder: &Path,
    _target: &Path,
    _progress: &mut dyn Progress,
) -> Result<(u64, String), String> {
    Err("this build has no model hub; build with the feature `hub`".to_owned())
}

fn absent(what: String) -> Error {
    Error::Unavailable {
        what,
        reason: "this build has no model hub".to_owned(),
        remedy: REMEDY.to_owned(),
    }
}

pub(super) fn file(
    _store: &Store,
    repo: &str,
    file: &str,
    _fetch: Fetch,
    _progress: &mut dyn Progress,
) -> Result<PathBuf> {
    Err(absent(format!("{repo}:{file}")))
}

pub(super) fn model(
    _store: &Store,
    repo: &str,
    _fetch: Fetch,
    _progress: &mut dyn Progress,
) -> Result<PathBuf> {
    Err(absent(repo.to_owned()))
}
