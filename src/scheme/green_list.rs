//! # `green-list`
//!
//! **What.** After each context a keyed share gamma of the vocabulary is green; the logits of
//! green tokens are raised by delta. A marked text holds more green tokens than gamma.
//!
//! **Paper.** Kirchenbauer et al., "A Watermark for Large Language Models", ICML 2023. There the
//! green list is a random permutation's head; here each token is green on its own, so one token
//! costs one block of the key stream and the null is binomial without correction.
//!
//! **Parameters.** `gamma` in (0, 1), `delta` in logits, `context.width` (0 is the fixed list of
//! Zhao et al. 2023, "Provable robust watermarking").
//!
//! **Null.** Bernoulli(floor(gamma 2^32) / 2^32) for every distinct (context, token).
//!
//! **Limits.** Text with little entropy has little room for a mark. With width 0 a reader of much
//! marked text can learn the list.

use crate::prf::{ChaCha8Stream, ContextSeeder, Key, PrfTag};
use crate::profile::{ContextWidth, Delta, Gamma};
use crate::scheme::{Action, Gate, Greedy, Membership, Null, Scheme, Scope, Step};
use crate::token::TokenId;

const TAG: PrfTag = PrfTag::new("greenmark/green-list/1");

/// The native green-list scheme under one key.
#[derive(Clone, Debug)]
pub struct GreenList {
    seeder: ContextSeeder,
    gamma: Gamma,
    delta: Delta,
    width: ContextWidth,
}

impl GreenList {
    /// The scheme with these parameters.
    #[must_use]
    pub fn new(key: &Key, gamma: Gamma, delta: Delta, width: ContextWidth) -> Self {
        Self { seeder: ContextSeeder::new(key, TAG), gamma, delta, width }
    }

    /// The seed of a context's list.
    #[must_use]
    pub fn seed(&self, context: &[TokenId]) -> [u8; 32] {
        self.seeder.seed(context)
    }

    /// The words of the first `vocab` tokens after `context`; those below the threshold are green.
    #[must_use]
    pub fn words(&self, context: &[TokenId], vocab: usize) -> Vec<u32> {
        ChaCha8Stream::new(&self.seed(context)).words(vocab)
    }

    /// Whether `token` is green after `context`.
    #[must_use]
    pub fn is_green(&self, context: &[TokenId], token: TokenId) -> bool {
        ChaCha8Stream::new(&self.seed(context)).word(u64::from(token)) < self.gamma.threshold()
    }
}

impl Scheme for GreenList {
    fn name(&self) -> &'static str {
        "green-list"
    }

    fn context_width(&self) -> usize {
        self.width.get()
    }

    fn step(&self, context: &[TokenId]) -> Step {
        // The chain computes in f32; a delta of at most 1000 loses nothing that matters.
        #[expect(clippy::cast_possible_truncation, reason = "at most 1000")]
        let delta = self.delta.get() as f32;
        Step {
            gate: Gate::Always,
            action: Action::Bias {
                membership: Membership::ChaCha8 {
                    stream: ChaCha8Stream::new(&self.seed(context)),
                    threshold: self.gamma.threshold(),
                },
                delta,
                scope: Scope::Survivors,
            },
        }
    }

    fn score(&self, context: &[TokenId], token: TokenId) -> f64 {
        f64::from(u8::from(self.is_green(context, token)))
    }

    fn null(&self) -> Null {
        Null::Bernoulli(self.gamma.effective())
    }

    fn effective_input(&self, context: &[TokenId], token: TokenId, input: &mut Vec<TokenId>) {
        input.extend_from_slice(context);
        input.push(token);
    }

    fn greedy(&self) -> Greedy {
        Greedy::Marked
    }
}
