//! `wm detect --entropy`: where the uncertainties come from, and how they are shown.
//!
//! With a model's name the model reads the text. Without one a sidecar that is in use serves, when
//! it holds the chances of each token; else the default model reads. A build without the engine has
//! the sidecar only, and takes the bare entropies of an older one.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use greenmark::Error;
use greenmark::detect::Report;
use greenmark::detect::entropy::{EntropyInput, EntropySource, GreenListBias, SamplingReport};
use greenmark::document::{Detector, Sidecar, sidecar_path};
use greenmark::sample::Effective;
use greenmark::token::TokenId;
use serde_json::Value;

use crate::args::DetectArgs;
use crate::commands::engine::{self, Known, Measurer};
use crate::resolve::Placing;

/// The model that reads when none is named.
const DEFAULT_MODEL: &str = "default";

/// The uncertainties that a run asks for.
pub(super) struct Uncertainty {
    /// The model named; empty when none is.
    model: String,
    offline: bool,
    placing: Placing,
    /// Whether some text needs the model whatever its sidecar holds.
    is_needed: bool,
    /// The model once it is loaded. Locked while it loads and reads, one text at a time: it uses
    /// all of rayon's workers by itself. Only threads that are no such workers may lock it.
    loaded: Mutex<Option<Measurer>>,
}

/// A sidecar in use.
#[derive(Clone, Copy)]
pub(super) struct Used<'a> {
    pub(super) name: &'a str,
    pub(super) sidecar: &'a Sidecar,
}

impl Uncertainty {
    /// What the flags ask for; `None` without `--entropy`.
    pub(super) fn resolve(args: &DetectArgs) -> Result<Option<Self>, Error> {
        let Some(model) = &args.entropy else {
            return match args.device.first_given() {
                Some(flag) => Err(Error::parameter(flag, "given alone", "together with --entropy")),
                None => Ok(None),
            };
        };
        // `--entropy FILE` means a model, also where the text was meant.
        if args.paths.is_empty() && is_text_file(Path::new(model)) {
            let allowed = "a model; put the text first: wm detect FILE --entropy";
            return Err(Error::parameter("entropy", model, allowed));
        }
        Ok(Some(Self {
            model: model.clone(),
            offline: args.tokenizer.offline,
            placing: Placing::resolve(&args.device)?,
            is_needed: needs_model(args, model),
            loaded: Mutex::new(None),
        }))
    }

    /// Loads the model when it is needed for sure, so that one that does not serve stops the run
    /// before the first text.
    pub(super) fn prepare(&self, detector: &Detector) -> Result<()> {
        if self.is_needed { self.with_model(detector, |_| Ok(())) } else { Ok(()) }
    }

    /// The uncertainties of `text` as `detector` reads it.
    pub(super) fn find(
        &self,
        detector: &Detector,
        text: &str,
        prompt: Option<&str>,
        used: Option<Used<'_>>,
    ) -> Result<EntropyInput> {
        let pieces = detector.pieces(text)?;
        let generation = used.map(|used| &used.sidecar.generation);
        let sampling = generation.and_then(|generation| generation.get("sampling")).cloned();
        if let Some(Used { name, sidecar }) = used
            && self.model.is_empty()
            && (sidecar.entropies.iter().any(|entry| entry.chances.is_some())
                || !engine::IS_PRESENT)
        {
            return Ok(EntropyInput {
                source: EntropySource::Sidecar(name.to_owned()),
                sampling,
                tokens: sidecar.align(&pieces),
            });
        }
        // Parameters that this version cannot read are not known.
        let effective: Option<Effective> =
            sampling.clone().and_then(|sampling| serde_json::from_value(sampling).ok());
        let seed = generation.and_then(|generation| generation.get("seed")).and_then(Value::as_u64);
        let known = Known { sampling: effective.as_ref(), seed: seed.unwrap_or(0) };
        let ids: Vec<TokenId> = pieces.iter().map(|piece| piece.id).collect();
        let bias = GreenListBias::of(detector.profile().scheme());
        let tokens = self.with_model(detector, |model| model.measure(prompt, &ids, bias, known))?;
        Ok(EntropyInput {
            source: EntropySource::Model(self.model_name().to_owned()),
            sampling: sampling.filter(|_| effective.is_some()),
            tokens,
        })
    }

    fn model_name(&self) -> &str {
        if self.model.is_empty() { DEFAULT_MODEL } else { &self.model }
    }

    /// What `work` makes of the model, which is loaded first when it is not yet.
    fn with_model<T>(
        &self,
        detector: &Detector,
        work: impl FnOnce(&Measurer) -> Result<T>,
    ) -> Result<T> {
        // A panic leaves a model or nothing behind, both of which are whole.
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = &*loaded {
            return work(model);
        }
        let tokenizer = detector.shared_tokenizer();
        let (name, placing) = (self.model_name(), self.placing);
        work(loaded.insert(Measurer::open(name, self.offline, placing, tokenizer)?))
    }
}

/// Whether some input has no sidecar that could serve in place of `model`: without a name, only
/// files that are named themselves have one.
fn needs_model(args: &DetectArgs, model: &str) -> bool {
    let has_none = |path: &PathBuf| {
        let is_text = path.as_os_str() == "-" || path.exists();
        is_text && (path.is_dir() || !sidecar_path(path).is_file())
    };
    !model.is_empty()
        || args.jsonl.is_some()
        || args.ignore_sidecar
        || args.paths.is_empty()
        || args.paths.iter().any(has_none)
}

/// Whether `path` is a file that no model is kept in.
fn is_text_file(path: &Path) -> bool {
    let model = ["gguf", "safetensors"];
    path.is_file()
        && path.extension().is_none_or(|extension| !model.iter().any(|known| extension == *known))
}

/// What a report says about uncertainty, for a terminal.
pub(super) fn lines(report: &Report) -> Vec<String> {
    let Some(entropy) = &report.entropy else { return Vec::new() };
    let mut lines = vec![entropy.sentence.clone()];
    let source = match &entropy.source {
        EntropySource::Model(name) => format!("read by the model {name}"),
        EntropySource::Sidecar(name) => format!("from {name}"),
    };
    let sampling = match &entropy.sampling {
        SamplingReport::Known(_) => "sampling parameters as the sidecar says",
        SamplingReport::Assumed => "temperature 1 and no truncation assumed",
    };
    let mut origin = format!("uncertainty {source}; {sampling}");
    if let Some(mean) = entropy.mean_entropy {
        // A String takes every write.
        let _ = write!(origin, "; mean entropy {mean:.2} nats");
    }
    if entropy.unaligned > 0 {
        let _ = write!(origin, "; unknown for {} scored tokens", entropy.unaligned);
    }
    lines.push(origin);
    let Some(plain) = report.tests.first().filter(|_| !entropy.tests.is_empty()) else {
        return lines;
    };
    lines.push(format!(
        "{:<18} {:>6} {:>7} {:>9}  if marked: {:>5} {:>6}",
        "test", "scored", "z", "log10 p", "z", "power"
    ));
    let mut row =
        |name: &str, scored: u64, z: Option<f64>, log10_p: f64, marked: Option<(f64, f64)>| {
            let z = z.map_or_else(|| "none".to_owned(), |z| format!("{z:.2}"));
            let marked = marked.map_or_else(String::new, |(z, power)| {
                format!("  {:>16.2} {:>5.1}%", z, power * 100.0)
            });
            lines.push(format!("{name:<18} {scored:>6} {z:>7} {log10_p:>9.2}{marked}"));
        };
    let power = |ratio: bool| {
        entropy.detectability.map(|found| {
            let power = if ratio { found.likelihood_ratio } else { found.plain };
            (power.z, power.power)
        })
    };
    row("plain", plain.scored, plain.z, plain.log10_p, power(false));
    for test in &entropy.tests {
        let marked = if test.decides { power(true) } else { None };
        row(test.rule.name(), test.scored, test.z, test.log10_p, marked);
    }
    lines
}
