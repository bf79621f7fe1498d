//! `wm keygen`: a fresh key file, never over an old one; and the public half of a signing key.

use anyhow::Result;
use greenmark::Error;
use greenmark::prf::Key;
use greenmark::signature::{PublicKey, SigningKey};

use crate::args::KeygenArgs;
use crate::exit::Exit;
use crate::output::{self, note};
use crate::resolve::default_key_path;

pub(crate) fn run(args: &KeygenArgs) -> Result<Exit> {
    let path = match &args.path {
        Some(path) => path.clone(),
        None => default_key_path()?,
    };
    if args.public {
        show_public(&SigningKey::from_key(&Key::read(&path)?).public(), args.json)?;
        return Ok(Exit::Success);
    }
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
    if args.signing {
        note!("{}: signing key {}; its public half follows", path.display(), key.fingerprint());
        show_public(&SigningKey::from_key(&key).public(), args.json)?;
    } else if args.json {
        output::json(&serde_json::json!({
            "path": path.display().to_string(),
            "fingerprint": key.fingerprint(),
        }))?;
    } else {
        output::line(&format!("{}: key {}", path.display(), key.fingerprint()))?;
    }
    Ok(Exit::Success)
}

/// The public half, alone on standard output, so that it can be kept in a file.
fn show_public(key: &PublicKey, as_json: bool) -> Result<()> {
    if as_json {
        return output::json(&serde_json::json!({ "public_key": key.to_string() }));
    }
    output::line(&key.to_string())
}
