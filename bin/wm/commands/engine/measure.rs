//! A model that reads texts: how uncertain it was before each token.

use std::sync::Arc;

use anyhow::Result;
use greenmark::detect::entropy::{GreenListBias, TokenUncertainty};
use greenmark::engine::{Forcing, never_marked};
use greenmark::sample::{Chain, Effective};
use greenmark::text::Tokenizer;
use greenmark::token::TokenId;
use indicatif::{ProgressBar, ProgressStyle};

use super::loaded::Loaded;
use crate::args::WeightsSource;

/// A loaded model that reads texts.
pub(crate) struct Measurer {
    loaded: Loaded,
}

/// What is known of the way a text was generated.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    /// The sampling parameters; without them temperature 1 and no truncation.
    pub(crate) sampling: Option<&'a Effective>,
    /// Seed of the draw.
    pub(crate) seed: u64,
}

impl Measurer {
    /// Loads the model that `spec` names, which has to read the ids of `tokenizer`.
    pub(crate) fn open(spec: &str, offline: bool, tokenizer: Arc<Tokenizer>) -> Result<Self> {
        let weights = WeightsSource { model: spec.to_owned(), offline, threads: None };
        Ok(Self { loaded: Loaded::with_tokenizer(&weights, tokenizer)? })
    }

    /// The uncertainty before each of `ids`, which continue `prompt`.
    pub(crate) fn measure(
        &self,
        prompt: Option<&str>,
        ids: &[TokenId],
        bias: Option<GreenListBias>,
        known: Known<'_>,
    ) -> Result<Vec<Option<TokenUncertainty>>> {
        let engine = &self.loaded.engine;
        let info = engine.model().info();
        let prompt = match prompt {
            Some(prompt) => engine.prompt_ids(strip_mark(prompt))?,
            None => Vec::new(),
        };
        let options = known.sampling.map(|sampling| sampling.parameters.clone());
        let never_marked = Arc::new(never_marked(info, engine.tokenizer())?);
        let chain = Chain::new(
            options.unwrap_or_default(),
            info.vocab_size,
            engine.end_ids(),
            never_marked,
        )?;
        let forcing = Forcing { model: engine.model(), chain: &chain, bias, seed: known.seed };
        let bar = bar(ids.len());
        let found = forcing.uncertainties(&prompt, ids, |done| bar.set_position(done as u64))?;
        bar.finish_and_clear();
        Ok(found)
    }
}

fn strip_mark(prompt: &str) -> &str {
    prompt.strip_prefix('\u{feff}').unwrap_or(prompt)
}

/// Progress on standard error; nothing is drawn where that is no terminal.
fn bar(tokens: usize) -> ProgressBar {
    let bar = ProgressBar::new(tokens as u64);
    if let Ok(style) = ProgressStyle::with_template("reading {wide_bar} {pos}/{len} tokens") {
        bar.set_style(style);
    }
    bar
}
