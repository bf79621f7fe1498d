//! # `gumbel`
//!
//! **What.** The draw's noise is keyed by the context: of the survivors the one with the largest
//! ln p - ln(-ln u) is taken. Averaged over keys the text has the model's own distribution.
//!
//! **Paper.** Aaronson, "My AI safety lecture for UT effective altruism", 2022; Kuditipudi et al.,
//! "Robust distortion-free watermarks", 2023.
//!
//! **Parameters.** `context.width` (default 4). Repeated contexts of one text are not marked,
//! otherwise a loop never ends.
//!
//! **Null.** The score -ln(1 - u) of the token in the text is Exp(1) for every distinct (context,
//! token).
//!
//! **Limits.** Greedy decoding is refused: without a draw there is no mark. Under one key equal
//! prompts with equal contexts start equally; samples differ only where a context was seen before.

use crate::prf::{ChaCha8Stream, ContextSeeder, Key, PrfTag, neg_ln_one_minus_uniform};
use crate::profile::ContextWidth;
use crate::scheme::{Action, Gate, Greedy, Null, Scheme, Step, Uniforms};
use crate::token::TokenId;

const TAG: PrfTag = PrfTag::new("greenmark/gumbel/1");

/// The native distortion-free scheme under one key.
#[derive(Clone, Debug)]
pub struct Gumbel {
    seeder: ContextSeeder,
    width: ContextWidth,
}

impl Gumbel {
    /// The scheme with these parameters.
    #[must_use]
    pub fn new(key: &Key, width: ContextWidth) -> Self {
        Self { seeder: ContextSeeder::new(key, TAG), width }
    }

    /// The seed of a context's noise.
    #[must_use]
    pub fn seed(&self, context: &[TokenId]) -> [u8; 32] {
        self.seeder.seed(context)
    }
}

impl Scheme for Gumbel {
    fn name(&self) -> &'static str {
        "gumbel"
    }

    fn context_width(&self) -> usize {
        self.width.get()
    }

    fn step(&self, context: &[TokenId]) -> Step {
        let stream = ChaCha8Stream::new(&self.seed(context));
        Step { gate: Gate::Always, action: Action::Race { uniforms: Uniforms::ChaCha8 { stream } } }
    }

    fn score(&self, context: &[TokenId], token: TokenId) -> f64 {
        let bits = ChaCha8Stream::new(&self.seed(context)).word_pair(u64::from(token));
        neg_ln_one_minus_uniform(bits)
    }

    fn null(&self) -> Null {
        Null::Exponential
    }

    fn effective_input(&self, context: &[TokenId], token: TokenId, input: &mut Vec<TokenId>) {
        input.extend_from_slice(context);
        input.push(token);
    }

    fn greedy(&self) -> Greedy {
        Greedy::Refused
    }
}
