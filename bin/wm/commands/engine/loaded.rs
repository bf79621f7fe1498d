//! A model with its tokenizer, ready to run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use greenmark::Error;
use greenmark::engine::{Device, Model, TextEngine};
use greenmark::text::Tokenizer;

use crate::args::{ModelSource, WeightsSource};
use crate::output::note;
use crate::resolve::resolve_model;

/// More threads than any machine this runs on has cores; a slip of the hand is not to start
/// thousands.
const MAX_THREADS: usize = 512;

/// Finds, fetches if allowed, and loads the model that the flags name, with its path.
pub(super) fn load_model(source: &WeightsSource) -> Result<(Model, PathBuf)> {
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
    let model = Model::load(&path, Device::Cpu)?;
    for warning in &model.info().warnings {
        note!("{warning}");
    }
    Ok((model, path))
}

pub(super) struct Loaded {
    pub(super) engine: TextEngine,
    pub(super) load_time: Duration,
}

impl Loaded {
    /// The model that the flags name, and its tokenizer.
    pub(super) fn open(source: &ModelSource) -> Result<Self> {
        let started = Instant::now();
        let (model, path) = load_model(&source.weights)?;
        let engine = TextEngine::open(model, &path, source.tokenizer.as_deref())?;
        Ok(Self { engine, load_time: started.elapsed() })
    }

    /// The model that the flags name, to read the ids of `tokenizer`: its own has to be the same
    /// when it can be read.
    pub(super) fn with_tokenizer(
        source: &WeightsSource,
        tokenizer: Arc<Tokenizer>,
    ) -> Result<Self> {
        let started = Instant::now();
        let (model, path) = load_model(source)?;
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
