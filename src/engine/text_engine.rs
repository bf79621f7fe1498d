//! A model joined with its tokenizer: what generating texts needs beside the requests.
//!
//! The command line and the service both start here, so that the rules for defaults, prompts and
//! limits have one copy. No model is searched for or fetched here; that is [`crate::store`].

use std::path::Path;
use std::sync::Arc;

use super::defaults::GenerationDefaults;
use super::model::Model;
use super::special::{end_ids, never_marked};
use crate::error::{Error, Result};
use crate::sample::{Chain, SamplingOptions};
use crate::text::Tokenizer;
use crate::token::{TokenId, TokenSet};

/// New tokens when nothing is said.
pub const DEFAULT_MAX_TOKENS: usize = 256;

/// A model and the tokenizer whose ids it reads. Immutable and shared between threads.
#[derive(Debug)]
pub struct TextEngine {
    model: Model,
    tokenizer: Arc<Tokenizer>,
    end_ids: Vec<TokenId>,
    never_marked: Arc<TokenSet>,
}

impl TextEngine {
    /// Joins a model and a tokenizer.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when the tokenizer has more ids than the model.
    pub fn new(model: Model, tokenizer: Arc<Tokenizer>) -> Result<Self> {
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
            });
        }
        let end_ids = end_ids(model.info(), &tokenizer);
        let never_marked = Arc::new(never_marked(model.info(), &tokenizer)?);
        Ok(Self { model, tokenizer, end_ids, never_marked })
    }

    /// Joins a model from `path` with its own tokenizer, or with the one in the file `named` when
    /// its own is missing or cannot be read. Another one than a readable own would mark ids that
    /// nobody else sees.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when both can be read and differ, else as [`Tokenizer::open`] and
    /// [`TextEngine::new`].
    pub fn open(model: Model, path: &Path, named: Option<&Path>) -> Result<Self> {
        Self::new(model, Arc::new(tokenizer(path, named)?))
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The tokenizer, for who keeps it longer.
    #[must_use]
    pub fn shared_tokenizer(&self) -> Arc<Tokenizer> {
        Arc::clone(&self.tokenizer)
    }

    /// The ids that end a text, ascending.
    #[must_use]
    pub fn end_ids(&self) -> &[TokenId] {
        &self.end_ids
    }

    /// The ids that carry no mark.
    pub(super) fn never_marked(&self) -> Arc<TokenSet> {
        Arc::clone(&self.never_marked)
    }

    /// The ids of a raw prompt; an empty one starts from the model's start token.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an empty prompt when the model has no start token; those of
    /// [`Tokenizer::prompt_ids`].
    pub fn prompt_ids(&self, prompt: &str) -> Result<Vec<TokenId>> {
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

    /// The chain of a request: `options` over the model's own defaults over the built-in values.
    ///
    /// # Errors
    /// Those of [`Chain::new`], and where tokens are drawn on a device those of
    /// [`Chain::check_kernels`].
    pub fn chain(&self, options: SamplingOptions) -> Result<Arc<Chain>> {
        let info = self.model.info();
        let options = options.over(model_defaults(&info.defaults));
        let never_marked = Arc::clone(&self.never_marked);
        let chain = Chain::new(options, info.vocab_size, &self.end_ids, never_marked)?;
        if self.model.draws_on_device() {
            chain.check_kernels()?;
        }
        Ok(Arc::new(chain))
    }

    /// The most new tokens of a text whose prompt has `prompt` ids: `wanted`, or when nothing is
    /// said [`DEFAULT_MAX_TOKENS`] or the room that the context leaves if that is less.
    ///
    /// # Errors
    /// [`Error::Parameter`] for 0; [`Error::ContextLength`] when they do not fit.
    pub fn max_tokens(&self, prompt: usize, wanted: Option<usize>) -> Result<usize> {
        let context = self.model.info().context_length;
        let room = context.saturating_sub(prompt);
        match wanted {
            Some(0) => Err(Error::parameter("max_tokens", 0, "at least 1")),
            Some(wanted) if wanted <= room => Ok(wanted),
            None if room > 0 => Ok(room.min(DEFAULT_MAX_TOKENS)),
            wanted => {
                let requested = wanted.unwrap_or(1);
                Err(Error::ContextLength { prompt, requested, context })
            }
        }
    }
}

/// A seed from the operating system's generator, below 2^53.
///
/// # Errors
/// [`Error::Backend`] when the system has no randomness to give.
pub fn random_seed() -> Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|source| Error::backend("asking the system for a seed", source))?;
    // JSON readers keep 53 bits of a number; the seed is echoed there and has to come back whole.
    Ok(u64::from_le_bytes(bytes) >> 11)
}

fn tokenizer(path: &Path, named: Option<&Path>) -> Result<Tokenizer> {
    let own = Tokenizer::open(path);
    let Some(named) = named else {
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

/// `generation_config.json` as options. A model that says `do_sample: false` is decoded greedily
/// by its authors' engine, whatever its temperature.
fn model_defaults(defaults: &GenerationDefaults) -> SamplingOptions {
    let whole = |value: Option<u64>| value.and_then(|value| i64::try_from(value).ok());
    SamplingOptions {
        temperature: match defaults.do_sample {
            Some(false) => Some(0.0),
            _ => defaults.temperature,
        },
        top_k: whole(defaults.top_k),
        top_p: defaults.top_p,
        min_p: defaults.min_p,
        typical_p: defaults.typical_p,
        epsilon_cutoff: defaults.epsilon_cutoff,
        eta_cutoff: defaults.eta_cutoff,
        repetition_penalty: defaults.repetition_penalty,
        no_repeat_ngram_size: defaults
            .no_repeat_ngram_size
            .and_then(|value| usize::try_from(value).ok()),
        ..SamplingOptions::default()
    }
}
