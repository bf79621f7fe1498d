//! What several test binaries share.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::path::PathBuf;

use greenmark::store::{Fetch, Silent, Store};

/// The default model's file: `WM_TEST_MODEL`, else the cache, else fetched into it as the program
/// would.
///
/// # Panics
/// If it cannot be had; the message holds the commands to run.
pub(crate) fn default_model() -> PathBuf {
    if let Some(path) = std::env::var_os("WM_TEST_MODEL") {
        return PathBuf::from(path);
    }
    Store::from_env()
        .and_then(|store| store.resolve("default", Fetch::Allowed, &mut Silent))
        .unwrap_or_else(|error| panic!("{error}"))
}
