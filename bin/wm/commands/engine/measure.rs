//! A model that reads texts: how uncertain it was before each token.

use std::sync::Arc;

use anyhow::Result;
use greenmark::detect::entropy::{GreenListBias, TokenUncertainty};
use greenmark::engine::Reading;
use greenmark::sample::Effective;
use greenmark::text::Tokenizer;
use greenmark::token::TokenId;
use indicatif::{ProgressBar, ProgressStyle};

use super::loaded::Loaded;
use crate::args::WeightsSource;
use crate::resolve::Placing;

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
    pub(crate) fn open(
        spec: &str,
        offline: bool,
        placing: Placing,
        tokenizer: Arc<Tokenizer>,
    ) -> Result<Self> {
        let weights = WeightsSource { model: spec.to_owned(), offline, threads: None };
        Ok(Self { loaded: Loaded::with_tokenizer(&weights, placing, tokenizer)? })
    }

    /// The uncertainty before each of `ids`, which continue `prompt`.
    pub(crate) fn measure(
        &self,
        prompt: Option<&str>,
        ids: &[TokenId],
        bias: Option<GreenListBias>,
        known: Known<'_>,
    ) -> Result<Vec<Option<TokenUncertainty>>> {
        let reading = Reading {
            prompt,
            ids,
            bias,
            sampling: known.sampling.map(|sampling| &sampling.parameters),
            seed: known.seed,
        };
        let bar = bar(ids.len());
        let read = |done| bar.set_position(done as u64);
        let found = self.loaded.engine.uncertainties(reading, read)?;
        bar.finish_and_clear();
        Ok(found)
    }
}

/// Progress on standard error; nothing is drawn where that is no terminal.
fn bar(tokens: usize) -> ProgressBar {
    let bar = ProgressBar::new(tokens as u64);
    if let Ok(style) = ProgressStyle::with_template("reading {wide_bar} {pos}/{len} tokens") {
        bar.set_style(style);
    }
    bar
}
