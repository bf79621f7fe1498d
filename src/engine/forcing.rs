//! Teacher forcing: what the model thought before each token of a text that already stands.
//!
//! The text is read in stretches, so that memory holds a few rows of logits and never one per
//! token. A text longer than the model's context is read in overlapping windows: each new window
//! begins with the last half of the one before.

use crate::detect::entropy::{GreenListBias, TokenUncertainty};
use crate::engine::{KvCache, LogitsAt, Model, Sequence};
use crate::error::{Error, Result};
use crate::sample::{Chain, Draw, History, Scratch};
use crate::token::{TokenId, check_ids};

/// Rows of logits held at a time.
const STRETCH: usize = 64;

/// How a text is read.
#[derive(Clone, Copy, Debug)]
pub struct Forcing<'a> {
    /// The model.
    pub model: &'a Model,
    /// The chain that the text was sampled with, as far as known.
    pub chain: &'a Chain,
    /// The mark; without one only entropies are found.
    pub bias: Option<GreenListBias>,
    /// Seed of the draw, for members that take random decisions.
    pub seed: u64,
}

impl Forcing<'_> {
    /// The uncertainty before each of `ids`, which continue `prompt`; `None` for a first token
    /// without a prompt, of which a model says nothing. `progress` is called with the number of
    /// tokens read so far.
    ///
    /// # Errors
    /// [`Error::TokenOutOfRange`]; those of the chain's members; [`Error::Parameter`] for a model
    /// whose context holds a single token.
    pub fn uncertainties(
        &self,
        prompt: &[TokenId],
        ids: &[TokenId],
        mut progress: impl FnMut(usize),
    ) -> Result<Vec<Option<TokenUncertainty>>> {
        let info = self.model.info();
        check_ids(prompt, info.vocab_size)?;
        check_ids(ids, info.vocab_size)?;
        let context = info.context_length;
        if context < 2 {
            return Err(Error::parameter("context length", context, "at least 2 tokens"));
        }
        let mut found = Vec::with_capacity(ids.len());
        if prompt.is_empty() {
            found.extend(ids.first().map(|_| None));
        }
        let sequence: Vec<TokenId> = prompt.iter().chain(ids).copied().collect();
        let mut history = History::new(if prompt.is_empty() { &[] } else { prompt });
        if prompt.is_empty()
            && let Some(&first) = ids.first()
        {
            history.push(first);
        }
        let mut scratch = Scratch::new();
        // The last token is never read: nothing stands behind it.
        let end = sequence.len().saturating_sub(1);
        let mut cache = self.model.new_cache(context.min(end.max(1)))?;
        // The first position whose next token is asked for.
        let first = prompt.len().saturating_sub(1);
        let mut position = first.saturating_sub(context - 1);
        while position < end {
            if cache.len() == context {
                cache.clear();
                let start = position - context / 2;
                self.read(&mut cache, &sequence[start..position])?;
            }
            if position < first {
                self.read(&mut cache, &sequence[position..first])?;
                position = first;
            }
            let rows = STRETCH.min(end - position).min(context - cache.len());
            let stretch = &sequence[position..position + rows];
            let mut batch = [Sequence { ids: stretch, cache: &mut cache, logits: LogitsAt::Every }];
            let logits = self.model.forward(&mut batch)?;
            for row in 0..rows {
                let draw = Draw { seed: self.seed, sample: 0, step: found.len() as u64 };
                // As many rows as were asked for come back.
                let values = logits[0].row(row).unwrap_or_default();
                let token = sequence[position + row + 1];
                found.push(Some(self.chain.replay(
                    values,
                    &mut history,
                    draw,
                    token,
                    self.bias,
                    &mut scratch,
                )?));
            }
            position += rows;
            progress(found.len());
        }
        Ok(found)
    }

    /// Reads tokens whose continuation is not asked for.
    fn read(&self, cache: &mut KvCache, ids: &[TokenId]) -> Result<()> {
        self.model.forward(&mut [Sequence { ids, cache, logits: LogitsAt::None }])?;
        Ok(())
    }
}
