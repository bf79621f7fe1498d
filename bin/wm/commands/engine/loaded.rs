//! A model with its tokenizer, ready to run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use greenmark::Error;
use greenmark::engine::{BatchShape, Model, SamplerPlace, TextEngine};
use greenmark::text::Tokenizer;

use crate::args::{ModelSource, WeightsSource};
use crate::output::note;
use crate::resolve::{Opened, Placing, resolve_model};

/// More threads than any machine this runs on has cores; a slip of the hand is not to start
/// thousands.
const MAX_THREADS: usize = 512;

/// Finds, fetches if allowed, and loads the model that the flags name, with its path.
pub(super) fn load_model(source: &WeightsSource, opened: &Opened) -> Result<(Model, PathBuf)> {
    if let Some(threads) = source.threads {
        if !(1..=MAX_THREADS).contains(&threads) {
            return Err(Error::parameter("threads", threads, format!("1 to {MAX_THREADS}")).into());
        }
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
            .context("cannot start the threads")?;
    }
    let path = resolve_model(&source.model, source.offline)?;
    let model = Model::load_with(&path, &opened.placement).map_err(|error| blame(error, opened))?;
    for warning in &model.info().warnings {
        note!("{warning}");
    }
    Ok((model, path))
}

/// An error of loading, with the way out when a device that nobody asked for is the cause.
fn blame(error: Error, opened: &Opened) -> anyhow::Error {
    let is_of_device = match &error {
        Error::Unavailable { .. } | Error::Backend { .. } => true,
        Error::Unsupported { what, .. } => what.contains("CUDA"),
        // What is wrong with a file is wrong everywhere.
        _ => false,
    };
    let error = anyhow::Error::new(error);
    if is_of_device && opened.is_own_choice && !opened.placement.device.is_cpu() {
        return error.context("--device auto took a GPU; --device cpu runs this without it");
    }
    error
}

/// Where tokens of this model are drawn, when that is not where it computes.
pub(super) fn drawn_on(model: &Model) -> Option<&'static str> {
    (model.sampler() == SamplerPlace::Cpu && !model.device().is_cpu()).then_some("CPU")
}

/// Where a model computes and where its tokens are drawn, for people.
pub(super) fn place(model: &Model) -> String {
    let drawn = drawn_on(model).map_or(String::new(), |at| format!(", drawn on the {at}"));
    format!("{}{drawn}", model.info().kernels)
}

pub(super) struct Loaded {
    pub(super) engine: TextEngine,
    pub(super) load_time: Duration,
}

impl Loaded {
    /// The model that the flags name, and its tokenizer. It computes in passes of the shape
    /// `batch` unless the flags name another.
    pub(super) fn open(source: &ModelSource, batch: BatchShape) -> Result<Self> {
        let started = Instant::now();
        let opened = Placing::resolve(&source.device)?.or_batch(batch).open()?;
        let (model, path) = load_model(&source.weights, &opened)?;
        let engine = TextEngine::open(model, &path, source.tokenizer.as_deref())?;
        Ok(Self { engine, load_time: started.elapsed() })
    }

    /// The model that the flags name, to read the ids of `tokenizer`: its own has to be the same
    /// when it can be read.
    pub(super) fn with_tokenizer(
        source: &WeightsSource,
        placing: Placing,
        tokenizer: Arc<Tokenizer>,
    ) -> Result<Self> {
        let started = Instant::now();
        let (model, path) = load_model(source, &placing.open()?)?;
        if let Ok(own) = Tokenizer::open(&path)
            && own.fingerprint() != tokenizer.fingerprint()
        {
            return Err(Error::Mismatch {
                field: "tokenizer fingerprint",
                left_name: format!("the model {}", source.model),
                left: own.fingerprint().to_owned(),
                right_name: "this detection".to_owned(),
                right: tokenizer.fingerprint().to_owned(),
                remedy: "name the model that reads these tokens".to_owned(),
            }
            .into());
        }
        let engine = TextEngine::new(model, tokenizer)?;
        Ok(Self { engine, load_time: started.elapsed() })
    }
}
