//! `wm keygen`: a fresh key file, never over an old one.

use anyhow::Result;
use greenmark::Error;
use greenmark::prf::Key;

use crate::args::KeygenArgs;
use crate::exit::Exit;
use crate::output;
use crate::resolve::default_key_path;

pub(crate) fn run(args: &KeygenArgs) -> Result<Exit> {
    let path = match &args.path {
        Some(path) => path.clone(),
        None => default_key_path()?,
    };
    if path.exists() {
        return Err(Error::file(
            &path,
            None,
            "the file exists and keys are never overwritten",
            "choose another name, or move the old key away (texts marked with it need it)",
        )
        .into());
    }
    if let (None, Some(folder)) = (&args.path, path.parent()) {
        std::fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))?;
    }
    let key = Key::generate()?;
    key.write_new(&path)?;
    if args.json {
        output::json(&serde_json::json!({
            "path": path.display().to_string(),
            "fingerprint": key.fingerprint(),
        }))?;
    } else {
        output::line(&format!("{}: key {}", path.display(), key.fingerprint()))?;
    }
    Ok(Exit::Success)
}
