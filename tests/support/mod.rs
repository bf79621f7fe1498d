//! What several test binaries share.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::path::PathBuf;

/// The default model's file.
///
/// # Panics
/// If it is in none of the known places; the message holds the command that fetches it.
pub(crate) fn default_model() -> PathBuf {
    if let Some(path) = std::env::var_os("WM_TEST_MODEL") {
        return PathBuf::from(path);
    }
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("WM_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("wm")))
        .or_else(|| set("HOME").map(|folder| folder.join(".cache/wm")))
        .unwrap_or_default();
    let path = cache.join("smollm2-135m-instruct-q4_1/SmolLM2-135M-Instruct.Q4_1.gguf");
    assert!(path.is_file(), "{} is missing; run: wm models pull default", path.display());
    path
}
