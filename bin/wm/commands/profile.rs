//! `wm profile`: the parameters of a mark, shown or checked.

use anyhow::Result;
use greenmark::document::identify;
use greenmark::prf::Key;
use greenmark::profile::Profile;
use serde_json::json;

use crate::args::{ProfileCheckArgs, ProfileCommand, ProfileShowArgs, TokenizerArgs};
use crate::exit::Exit;
use crate::output;
use crate::resolve::{KeySource, resolve_key, resolve_profile, resolve_tokenizer};

pub(crate) fn run(command: ProfileCommand) -> Result<Exit> {
    match command {
        ProfileCommand::Show(args) => show(&args),
        ProfileCommand::Check(args) => check(args),
    }
}

fn show(args: &ProfileShowArgs) -> Result<Exit> {
    let key = resolve_key(&args.key, KeySource::Existing)?;
    let tokenizer = resolve_tokenizer(&args.tokenizer)?;
    output::json(&resolve_profile(&args.mark, identify(&tokenizer), &key)?)?;
    Ok(Exit::Success)
}

fn check(args: ProfileCheckArgs) -> Result<Exit> {
    let profile = Profile::read(&args.file)?;
    let name = args.file.display().to_string();
    if let Some(path) = &args.key_file {
        profile.require_key(&name, Key::read(path)?.fingerprint())?;
    }
    if let Some(tokenizer) = args.tokenizer {
        let source = TokenizerArgs { tokenizer, offline: args.offline };
        profile.require_tokenizer(&name, &identify(&*resolve_tokenizer(&source)?))?;
    }
    output::json(&json!({"valid": true, "profile": profile}))?;
    Ok(Exit::Success)
}
