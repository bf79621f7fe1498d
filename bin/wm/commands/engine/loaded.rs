//! A model with its tokenizer, ready to run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use greenmark::Error;
use greenmark::engine::{Device, Model};
use greenmark::text::Tokenizer;

use crate::args::ModelSource;
use crate::resolve::resolve_model;

/// Finds, fetches if allowed, and loads the model that the flags name, with its path.
pub(super) fn load_model(source: &ModelSource) -> Result<(Model, PathBuf)> {
    if let Some(threads) = source.threads {
        if threads == 0 {
            return Err(Error::parameter("threads", 0, "at least 1").into());
        }
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
            .context("cannot start the threads")?;
    }
    let path = resolve_model(&source.model, source.offline)?;
    Ok((Model::load(&path, Device::Cpu)?, path))
}

pub(super) struct Loaded {
    pub(super) model: Model,
    pub(super) tokenizer: Arc<Tokenizer>,
    pub(super) load_time: Duration,
}

impl Loaded {
    /// The model that the flags name, and its tokenizer.
    pub(super) fn open(source: &ModelSource) -> Result<Self> {
        let started = Instant::now();
        let (model, path) = load_model(source)?;
        let tokenizer = Tokenizer::open(source.tokenizer.as_ref().unwrap_or(&path))?;
        let (ids, width) = (tokenizer.vocab_size(), model.info().vocab_size);
        // A model may have padding rows behind the tokenizer's ids, never the other way round.
        if ids > width {
            return Err(Error::Mismatch {
                field: "vocabulary size",
                left_name: "the tokenizer".to_owned(),
                left: ids.to_string(),
                right_name: "the model".to_owned(),
                right: width.to_string(),
                remedy: "use the tokenizer that belongs to the model".to_owned(),
            }
            .into());
        }
        Ok(Self { model, tokenizer: Arc::new(tokenizer), load_time: started.elapsed() })
    }

    /// The ids that end a text: every one that the model or its tokenizer declares.
    pub(super) fn end_ids(&self) -> Vec<u32> {
        let mut ids = self.model.info().end_ids.clone();
        ids.extend_from_slice(self.tokenizer.eos_ids());
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}
