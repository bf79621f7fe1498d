//! What a request has seen so far: its tokens, their counts and the state of adaptive members.
//!
//! Counts are kept as tokens arrive, so a step of the chain costs no pass over the whole
//! sequence for them. It knows nothing of contexts of a mark; the scheme keeps its own.

use std::collections::HashMap;

use crate::token::TokenId;

/// The tokens of one request and the state that a step depends on beside the logits.
#[derive(Clone, Debug)]
pub struct History {
    tokens: Vec<TokenId>,
    prompt: usize,
    /// Each id once, in order of first appearance, with its counts.
    counts: Vec<Count>,
    index: HashMap<TokenId, usize>,
    pub(super) mirostat_mu: Option<f64>,
}

/// How often an id has appeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) id: TokenId,
    /// In prompt and output.
    pub(crate) total: u32,
    /// In the output only.
    pub(crate) output: u32,
}

/// Which tokens a penalty counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PenaltyScope {
    /// Prompt and output.
    PromptAndOutput,
    /// The output only.
    Output,
    /// The last tokens of prompt and output, at most so many.
    Last(usize),
}

impl History {
    /// The history at the start of a request.
    #[must_use]
    pub fn new(prompt: &[TokenId]) -> Self {
        let mut history = Self {
            tokens: Vec::with_capacity(prompt.len()),
            prompt: 0,
            counts: Vec::new(),
            index: HashMap::new(),
            mirostat_mu: None,
        };
        for &id in prompt {
            history.record(id, 0);
        }
        history.prompt = prompt.len();
        history
    }

    /// Appends a token of the output that no chain chose (forced or replayed).
    /// [`Chain::accept`](super::Chain::accept) is for chosen ones.
    pub fn push(&mut self, id: TokenId) {
        self.record(id, 1);
    }

    fn record(&mut self, id: TokenId, output: u32) {
        self.tokens.push(id);
        let index = *self.index.entry(id).or_insert_with(|| {
            self.counts.push(Count { id, total: 0, output: 0 });
            self.counts.len() - 1
        });
        self.counts[index].total += 1;
        self.counts[index].output += output;
    }

    /// Prompt and output.
    #[must_use]
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The prompt.
    #[must_use]
    pub fn prompt(&self) -> &[TokenId] {
        &self.tokens[..self.prompt]
    }

    /// The output so far.
    #[must_use]
    pub fn generated(&self) -> &[TokenId] {
        &self.tokens[self.prompt..]
    }

    /// Calls `visit` once per distinct id in scope with its count there.
    pub(crate) fn for_each_count(&self, scope: PenaltyScope, mut visit: impl FnMut(TokenId, u32)) {
        match scope {
            PenaltyScope::PromptAndOutput => {
                self.counts.iter().for_each(|count| visit(count.id, count.total));
            }
            PenaltyScope::Output => self
                .counts
                .iter()
                .filter(|count| count.output > 0)
                .for_each(|count| visit(count.id, count.output)),
            PenaltyScope::Last(length) => {
                let start = self.tokens.len().saturating_sub(length);
                let mut window = self.tokens[start..].to_vec();
                window.sort_unstable();
                for run in window.chunk_by(|a, b| a == b) {
                    // A run is as long as the sequence at most, whose length fits u32 wherever
                    // token positions do.
                    visit(run[0], u32::try_from(run.len()).unwrap_or(u32::MAX));
                }
            }
        }
    }
}
