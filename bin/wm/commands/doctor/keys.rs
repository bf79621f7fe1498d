//! The files of secrets in the default places: can they be used, and by nobody else?

use std::path::Path;

use greenmark::prf::Key;
use greenmark::server::KeyFile;

use super::Check;
use crate::resolve::{api_keys_file, default_key_path};

/// The key that marks texts when none is named.
pub(super) fn default_key() -> Check {
    let name = "key";
    let path = match default_key_path() {
        Ok(path) => path,
        Err(error) => return Check::problem_of(name, &error),
    };
    // A link to nowhere is a file that cannot be read, not one that is not there.
    if path.symlink_metadata().is_err() {
        return Check::note(name, format!("{}: no default key yet", path.display()))
            .with_remedy("`wm generate` makes one, and so does `wm keygen`");
    }
    match Key::read(&path) {
        Ok(key) => {
            let (place, mode) = (path.display(), mode(&path));
            Check::ok(name, format!("{place}: {mode}fingerprint {}", key.fingerprint()))
        }
        Err(error) => Check::problem_of(name, &error),
    }
}

/// The API keys of a service; `None` when there is no such file.
pub(super) fn api_keys() -> Option<Check> {
    let name = "API keys";
    let (file, _): (KeyFile, bool) = api_keys_file(None).ok()?;
    file.path().symlink_metadata().ok()?;
    Some(match file.read() {
        Ok(keys) => Check::ok(name, format!("{}: {} keys", file.path().display(), keys.len())),
        Err(error) => Check::problem_of(name, &error),
    })
}

#[cfg(unix)]
fn mode(path: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let mode = path.metadata().map(|found| found.permissions().mode() & 0o777);
    mode.map_or(String::new(), |mode| format!("mode {mode:04o}, "))
}

#[cfg(not(unix))]
fn mode(_path: &Path) -> String {
    String::new()
}
