//! `wm detect`: files, folders, standard input or token ids to reports and one exit code.

mod inputs;
mod render;

use std::path::Path;

use anyhow::Result;
use greenmark::Error;
use greenmark::detect::{Alpha, DetectOptions, Report, TokenDetails};
use greenmark::document::{Detector, Sidecar, identify, sidecar_path};
use greenmark::profile::{Profile, TokenizerIdentity};
use greenmark::text::Normalizer;
use serde_json::json;

use crate::args::DetectArgs;
use crate::exit::{self, Exit};
use crate::output;
use crate::resolve::{
    KeySource, NamedKey, read_ids, read_text, resolve_key, resolve_profile, resolve_tokenizer,
};
use inputs::Input;

#[cfg(feature = "engine")]
pub(crate) use render::first_line;

/// What the whole run shares.
struct Run<'a> {
    args: &'a DetectArgs,
    detector: Detector,
    key: NamedKey,
    options: DetectOptions,
    normalizers: Vec<Normalizer>,
    prompt: Option<String>,
}

pub(crate) fn run(args: &DetectArgs) -> Result<Exit> {
    let options = options(args)?;
    let normalizers =
        args.normalize.iter().map(|name| Normalizer::parse(name)).collect::<Result<_, _>>()?;
    let prompt = args.prompt_file.as_deref().map(read_text).transpose()?;
    let key = resolve_key(&args.key, KeySource::Existing)?;
    let tokenizer = resolve_tokenizer(&args.tokenizer)?;
    let profile = profile(args, identify(&tokenizer), &key)?;
    let detector = Detector::new(tokenizer, profile, &key.key, options)?;
    let run = Run { args, detector, key, options, normalizers, prompt };
    if let Some(path) = &args.ids {
        let report = run.detector.ids(&read_ids(path)?, run.prompt.as_deref())?;
        show(args, None, &report)?;
        return Ok(report.verdict.into());
    }
    run.inputs(&inputs::expand(&args.paths)?)
}

impl Run<'_> {
    /// Judges every input. One that fails does not keep the others from being judged.
    fn inputs(&self, inputs: &[Input]) -> Result<Exit> {
        if let [input] = inputs {
            let report = self.judge(input)?;
            show(self.args, None, &report)?;
            return Ok(report.verdict.into());
        }
        let mut exit = Exit::Success;
        for input in inputs {
            let name = input.name();
            match self.judge(input) {
                Ok(report) => {
                    show(self.args, Some(&name), &report)?;
                    exit = exit.combine(report.verdict.into());
                }
                Err(error) => {
                    if self.args.json {
                        let error = exit::message(&error);
                        output::line(&json!({"path": name, "error": error}).to_string())?;
                    } else {
                        eprintln!("wm: {}", exit::message(&error));
                    }
                    exit = exit.combine(exit::of(&error));
                }
            }
        }
        Ok(exit)
    }

    fn judge(&self, input: &Input) -> Result<Report> {
        let bytes = input.read()?;
        let detector;
        let (judge, generation, note) = match self.sidecar(input, &bytes)? {
            Beside::Nothing => (&self.detector, None, None),
            Beside::Stale(note) => (&self.detector, None, Some(note)),
            Beside::Agrees(sidecar) => (&self.detector, Some(sidecar.generation), None),
            Beside::Followed(sidecar) => {
                detector =
                    self.detector.with_profile(sidecar.profile, &self.key.key, self.options)?;
                (&detector, Some(sidecar.generation), None)
            }
        };
        let prompt = self.prompt.as_deref();
        let path = input.path();
        let mut report = judge.bytes(path, &bytes, prompt, &self.normalizers, generation)?;
        report.warnings.extend(note);
        Ok(report)
    }

    /// The sidecar of a file that was named itself; those of a folder's files are never read.
    fn sidecar(&self, input: &Input, bytes: &[u8]) -> Result<Beside> {
        let Input::File(path) = input else { return Ok(Beside::Nothing) };
        let beside = sidecar_path(path);
        if self.args.ignore_sidecar || !beside.is_file() {
            if self.args.sidecar && !beside.is_file() {
                return Err(Error::file(
                    &beside,
                    None,
                    "there is no sidecar",
                    "leave --sidecar out to detect by flags",
                )
                .into());
            }
            return Ok(Beside::Nothing);
        }
        let sidecar = Sidecar::read(&beside)?;
        if !sidecar.belongs_to(bytes) {
            return Ok(Beside::Stale(greenmark::detect::Warning {
                code: "stale_sidecar",
                text: format!("{} belongs to another text and was not used", beside.display()),
            }));
        }
        let (name, ours) = (beside.display().to_string(), self.detector.profile());
        if self.args.sidecar {
            self.flags_agree(&sidecar.profile, &name)?;
            return Ok(Beside::Followed(sidecar));
        }
        let remedy = "pass --sidecar to follow it or --ignore-sidecar to go without it";
        ours.agree("this detection", &sidecar.profile, &name, remedy)?;
        Ok(Beside::Agrees(sidecar))
    }

    /// With `--sidecar`, a flag that was given may still not disagree with it.
    fn flags_agree(&self, theirs: &Profile, name: &str) -> Result<()> {
        let mark = &self.args.mark;
        let explicit = mark.profile.is_some()
            || mark.scheme.is_some()
            || mark.gamma.is_some()
            || mark.context_width.is_some()
            || mark.context_prompt.is_some();
        if explicit {
            let remedy = "leave the flag out to follow the sidecar";
            self.detector.profile().agree("the command line", theirs, name, remedy)?;
        }
        Ok(())
    }
}

/// What stands beside a file.
enum Beside {
    Nothing,
    Stale(greenmark::detect::Warning),
    Agrees(Sidecar),
    Followed(Sidecar),
}

fn options(args: &DetectArgs) -> Result<DetectOptions, Error> {
    let default = DetectOptions::default();
    Ok(DetectOptions {
        alpha: match (args.alpha, args.z_threshold) {
            (Some(alpha), _) => Alpha::new(alpha)?,
            (None, Some(z)) => Alpha::from_z(z)?,
            (None, None) => default.alpha,
        },
        min_scored: args.min_scored.unwrap_or(default.min_scored),
        details: if args.details { TokenDetails::Include } else { TokenDetails::Omit },
    })
}

fn profile(
    args: &DetectArgs,
    tokenizer: TokenizerIdentity,
    key: &NamedKey,
) -> Result<Profile, Error> {
    resolve_profile(&args.mark, tokenizer, key.identity())
}

fn show(args: &DetectArgs, name: Option<&Path>, report: &Report) -> Result<()> {
    match (args.json, name) {
        (true, None) => output::json(report),
        (true, Some(name)) => output::line(&json!({"path": name, "report": report}).to_string()),
        (false, name) => output::write(&render::text(name, report)),
    }
}
