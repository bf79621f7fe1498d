//! A text that already stands, read by the model: how uncertain it was before each token.

use super::forcing::Forcing;
use super::text_engine::TextEngine;
use crate::detect::entropy::{GreenListBias, TokenUncertainty};
use crate::error::Result;
use crate::sample::{Chain, SamplingOptions};
use crate::token::TokenId;

/// What is to be read, and what is known of the way it was generated.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// The prompt; a leading byte-order mark is an artefact of its file and left out.
    pub prompt: Option<&'a str>,
    /// The ids that continue it.
    pub ids: &'a [TokenId],
    /// The mark; without one only entropies are found.
    pub bias: Option<GreenListBias>,
    /// The sampling parameters; without them temperature 1 and no truncation.
    pub sampling: Option<&'a SamplingOptions>,
    /// Seed of the draw.
    pub seed: u64,
}

impl TextEngine {
    /// The uncertainty before each of the ids; `progress` is called with the number of tokens
    /// read so far.
    ///
    /// # Errors
    /// As [`Forcing::uncertainties`], [`TextEngine::prompt_ids`] and [`Chain::new`].
    pub fn uncertainties(
        &self,
        reading: Reading<'_>,
        progress: impl FnMut(usize),
    ) -> Result<Vec<Option<TokenUncertainty>>> {
        let prompt = match reading.prompt {
            Some(prompt) => self.prompt_ids(prompt.strip_prefix('\u{feff}').unwrap_or(prompt))?,
            None => Vec::new(),
        };
        let options = reading.sampling.cloned().unwrap_or_default();
        let vocab = self.model().info().vocab_size;
        let chain = Chain::new(options, vocab, self.end_ids(), self.never_marked())?;
        let forcing =
            Forcing { model: self.model(), chain: &chain, bias: reading.bias, seed: reading.seed };
        forcing.uncertainties(&prompt, reading.ids, progress)
    }
}
