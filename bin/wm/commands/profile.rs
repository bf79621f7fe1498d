//! `wm profile`: the parameters of a mark, shown or checked.

use anyhow::Result;
use greenmark::Error;
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
    output::json(&resolve_profile(&args.mark, identify(&tokenizer), key.identity())?)?;
    Ok(Exit::Success)
}

fn check(args: ProfileCheckArgs) -> Result<Exit> {
    let profile = Profile::read(&args.file)?;
    let name = args.file.display().to_string();
    let differs = |field, left: &str, right_name: String, right: &str| Error::Mismatch {
        field,
        left_name: name.clone(),
        left: left.to_owned(),
        right_name,
        right: right.to_owned(),
        remedy: "one of the two is not the one this profile was made with".to_owned(),
    };
    if let Some(path) = &args.key_file {
        let (named, given) = (profile.key().fingerprint, Key::read(path)?.fingerprint());
        if named != given {
            let right_name = path.display().to_string();
            let (left, right) = (named.to_string(), given.to_string());
            return Err(differs("key fingerprint", &left, right_name, &right).into());
        }
    }
    if let Some(spec) = args.tokenizer {
        let source = TokenizerArgs { tokenizer: spec.clone(), offline: args.offline };
        let given = identify(&*resolve_tokenizer(&source)?);
        let named = profile.tokenizer();
        for (field, left, right) in [
            ("tokenizer fingerprint", &named.fingerprint, &given.fingerprint),
            ("never-marked ids", &named.never_marked, &given.never_marked),
        ] {
            if left != right {
                return Err(differs(field, left, spec, right).into());
            }
        }
    }
    output::json(&json!({"valid": true, "profile": profile}))?;
    Ok(Exit::Success)
}
