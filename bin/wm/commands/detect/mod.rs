//! `wm detect`: files, folders, standard input or token ids to reports and one exit code.

mod batch;
mod entropy;
mod inputs;
mod lines;
mod q_values;
mod render;
mod sidecar;
mod summary;
mod walk;

use std::path::Path;

use anyhow::Result;
use greenmark::Error;
use greenmark::detect::{Alpha, DetectOptions, Sentences, TokenDetails, WindowSearch};
use greenmark::document::{Circumstances, Detector, identify, sha256_hex};
use greenmark::text::Normalizer;

use crate::args::DetectArgs;
use crate::exit::Exit;
use crate::resolve::{
    KeySource, NamedKey, ids_from, read_input, read_text, resolve_key, resolve_profile,
    resolve_tokenizer,
};
use entropy::{Uncertainty, Used};
use inputs::Work;
use render::{Judged, Renderer};
use sidecar::Beside;

pub(super) use inputs::{Input, Inputs};
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
    renderer: Renderer,
    uncertainty: Option<Uncertainty>,
}

pub(crate) fn run(args: &DetectArgs) -> Result<Exit> {
    let options = options(args)?;
    let normalizers =
        args.normalize.iter().map(|name| Normalizer::parse(name)).collect::<Result<Vec<_>, _>>()?;
    inputs::standard_input_once(args)?;
    let uncertainty = Uncertainty::resolve(args)?;
    let work = Work::of(args)?;
    let prompt = args.prompt_file.as_deref().map(read_text).transpose()?;
    let key = resolve_key(&args.key, KeySource::Existing)?;
    let tokenizer = resolve_tokenizer(&args.tokenizer)?;
    let profile = resolve_profile(&args.mark, identify(&tokenizer), &key)?;
    let detector = Detector::new(tokenizer, profile, &key.key, options)?;
    if let Some(uncertainty) = &uncertainty {
        uncertainty.prepare(&detector)?;
    }
    let several = matches!(work, Work::Many(_));
    let renderer = Renderer::new(args, several)?;
    let run = Run { args, detector, key, options, normalizers, prompt, renderer, uncertainty };
    match work {
        Work::Ids(path) => run.ids(&path),
        Work::One(input) => run.one(input),
        Work::Many(inputs) => batch::run(&run, inputs),
    }
}

impl Run<'_> {
    fn ids(&self, path: &Path) -> Result<Exit> {
        let bytes = read_input(path)?;
        let ids = ids_from(path, &bytes)?;
        let report = self.detector.ids(&ids, sha256_hex(&bytes), self.prompt.as_deref())?;
        let exit = report.verdict.into();
        self.renderer.show(path, Judged { report, text: None })?;
        Ok(exit)
    }

    fn one(&self, input: Input) -> Result<Exit> {
        let place = input.path().to_path_buf();
        let judged = self.judge(input)?;
        let exit = judged.report.verdict.into();
        self.renderer.show(&place, judged)?;
        Ok(exit)
    }

    fn judge(&self, input: Input) -> Result<Judged> {
        let (path, is_named) = (input.path().to_path_buf(), matches!(input, Input::File(_)));
        let bytes = input.read()?;
        let followed;
        let beside = sidecar::look(self, &path, is_named, &bytes)?;
        let (judge, used, note) = match &beside {
            Beside::Nothing => (&self.detector, None, None),
            Beside::Stale(note) => (&self.detector, None, Some(note.clone())),
            Beside::InUse { profile, sidecar, name } => {
                let profile = profile.clone();
                followed = self.detector.with_profile(profile, &self.key.key, self.options)?;
                (&followed, Some(Used { name, sidecar }), None)
            }
        };
        // Bytes that are no text are refused below.
        let entropy = match (&self.uncertainty, std::str::from_utf8(&bytes)) {
            (Some(wanted), Ok(text)) => {
                Some(wanted.find(judge, text, self.prompt.as_deref(), used)?)
            }
            _ => None,
        };
        let circumstances = Circumstances {
            prompt: self.prompt.as_deref(),
            normalizers: &self.normalizers,
            generation: used.map(|used| used.sidecar.generation.clone()),
            entropy,
        };
        let mut report = judge.bytes(&path, &bytes, &circumstances)?;
        report.warnings.extend(note);
        // A text that was judged is UTF-8.
        let text = self.args.reads_text().then(|| String::from_utf8(bytes).ok()).flatten();
        Ok(Judged { report, text })
    }
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
        windows: if args.windows { WindowSearch::On } else { WindowSearch::Off },
        details: if args.details || args.highlight || args.html.is_some() {
            TokenDetails::Include
        } else {
            TokenDetails::Omit
        },
        sentences: if args.sentences || args.html.is_some() {
            Sentences::Include
        } else {
            Sentences::Omit
        },
        profiles: default.profiles,
    })
}
