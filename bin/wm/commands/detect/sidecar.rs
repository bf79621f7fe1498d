//! The sidecar rules: one that disagrees stops the run, `--sidecar` follows it, one of another
//! text is not used, and only a file that was named itself has one.

use std::path::Path;

use anyhow::Result;
use greenmark::Error;
use greenmark::detect::Warning;
use greenmark::document::{Sidecar, identify, sha256_hex, sidecar_path};
use greenmark::profile::Profile;

use super::Run;
use crate::resolve::ExplicitMark;

/// What stands beside an input.
pub(super) enum Beside {
    /// Nothing, or nothing that is to be read.
    Nothing,
    /// A sidecar of another text.
    Stale(Warning),
    /// A sidecar of this text, and the profile to judge by.
    InUse { profile: Profile, sidecar: Box<Sidecar>, name: String },
}

/// Looks beside the file `path`, whose content is `bytes`, when it was named itself.
pub(super) fn look(run: &Run<'_>, path: &Path, is_named: bool, bytes: &[u8]) -> Result<Beside> {
    let follow = run.args.sidecar;
    if !is_named && follow {
        let allowed = "for files that are named themselves; folders and standard input have no \
                       sidecar";
        return Err(Error::parameter("sidecar", path.display(), allowed).into());
    }
    if !is_named || run.args.ignore_sidecar {
        return Ok(Beside::Nothing);
    }
    let beside = sidecar_path(path);
    if !beside.is_file() {
        if follow {
            let remedy = "leave --sidecar out to detect by flags";
            return Err(Error::file(&beside, None, "there is no sidecar", remedy).into());
        }
        return Ok(Beside::Nothing);
    }
    let name = beside.display().to_string();
    let sidecar = Sidecar::read(&beside)?;
    if !sidecar.belongs_to(bytes) {
        if follow {
            return Err(Error::Mismatch {
                field: "text SHA-256",
                left_name: path.display().to_string(),
                left: sha256_hex(bytes),
                right_name: name,
                right: sidecar.text_sha256,
                remedy: "the text was changed or the sidecar belongs to another; name the \
                         parameters by flags or --profile"
                    .to_owned(),
            }
            .into());
        }
        let text = format!("{name} belongs to another text and was not used");
        return Ok(Beside::Stale(Warning { code: "stale_sidecar", text }));
    }
    let (tokenizer, key) = (identify(run.detector.tokenizer()), &run.key);
    sidecar.profile.require(&name, &tokenizer, key.key.fingerprint())?;
    if !follow {
        let remedy = "pass --sidecar to follow it or --ignore-sidecar to go without it";
        let ours = run.detector.profile();
        if run.args.mark.profile.is_some() {
            ours.agree_fully("this detection", &sidecar.profile, &name, remedy)?;
        } else {
            ours.agree("this detection", &sidecar.profile, &name, remedy)?;
        }
    }
    // The sidecar's profile judges; a flag that was given may not disagree with it, also where it
    // decides no detection.
    let explicit = ExplicitMark::over(&run.args.mark, name.clone(), sidecar.profile.clone())?;
    let profile = explicit.profile(tokenizer, key)?;
    Ok(Beside::InUse { profile, sidecar: Box::new(sidecar), name })
}
