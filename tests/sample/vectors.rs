//! Reading the golden vectors.

use std::path::{Path, PathBuf};

/// The folder of the golden vectors: `$WM_VECTORS`, else `data/vectors`.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os("WM_VECTORS").map_or_else(repository_folder, PathBuf::from)
}

/// `data/vectors` of the repository.
pub(crate) fn repository_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/vectors")
}

/// The JSON file `path`.
pub(crate) fn read(path: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{} is not JSON: {error}", path.display()))
}
