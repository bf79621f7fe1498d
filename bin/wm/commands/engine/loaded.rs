//! A model with its tokenizer, ready to run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use greenmark::Error;
use greenmark::engine::{Device, Model, end_ids};
use greenmark::text::Tokenizer;
use greenmark::token::TokenId;

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
    pub(super) model: Model,
    pub(super) tokenizer: Arc<Tokenizer>,
    pub(super) load_time: Duration,
}

impl Loaded {
    /// The model that the flags name, and its tokenizer.
    pub(super) fn open(source: &ModelSource) -> Result<Self> {
        let started = Instant::now();
        let (model, path) = load_model(&source.weights)?;
        let tokenizer = Arc::new(tokenizer(source, &path)?);
        Self::join(model, tokenizer, started)
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
        Self::join(model, tokenizer, started)
    }

    fn join(model: Model, tokenizer: Arc<Tokenizer>, started: Instant) -> Result<Self> {
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
        Ok(Self { model, tokenizer, load_time: started.elapsed() })
    }

    /// The ids of a raw prompt; an empty one starts from the model's start token.
    pub(super) fn prompt_ids(&self, prompt: &str) -> Result<Vec<TokenId>, Error> {
        let ids = self.tokenizer.prompt_ids(prompt)?;
        if !ids.is_empty() {
            return Ok(ids);
        }
        let start = self.model.info().bos_id.or_else(|| self.tokenizer.bos_id());
        start.map(|id| vec![id]).ok_or_else(|| {
            let allowed = "at least one token: this model has no start token";
            Error::parameter("prompt", "empty", allowed)
        })
    }

    /// The ids that end a text.
    pub(super) fn end_ids(&self) -> Vec<TokenId> {
        end_ids(self.model.info(), &self.tokenizer)
    }
}

/// The model's own tokenizer, or the one that was named for a model whose own is missing or cannot
/// be read. Another one than a readable own would mark ids that nobody else sees.
fn tokenizer(source: &ModelSource, path: &Path) -> Result<Tokenizer, Error> {
    let own = Tokenizer::open(path);
    let Some(named) = &source.tokenizer else {
        return own.map_err(|error| match error {
            Error::Io { source, .. } if path.is_dir() => {
                let problem = format!("its tokenizer.json cannot be read: {source}");
                Error::file(path, None, problem, "name one with --tokenizer")
            }
            other => other,
        });
    };
    let given = Tokenizer::open(named)?;
    match own {
        Ok(own) if own.fingerprint() != given.fingerprint() => Err(Error::Mismatch {
            field: "tokenizer fingerprint",
            left_name: "the model".to_owned(),
            left: own.fingerprint().to_owned(),
            right_name: named.display().to_string(),
            right: given.fingerprint().to_owned(),
            remedy: "leave --tokenizer out: the model brings its own".to_owned(),
        }),
        _ => Ok(given),
    }
}
