//! Watermark schemes: what to do at a step of generation, what evidence a text holds, and which
//! input of the PRF each token's evidence depends on.
//!
//! One file per scheme and one line in [`build`]. A scheme decides no verdict and draws no token.

mod green_list;
mod gumbel;
mod marker;
mod step;

use std::fmt::Debug;

use crate::prf::Key;
use crate::profile::{Profile, SchemeParameters};
use crate::token::TokenId;

pub use green_list::GreenList;
pub use gumbel::Gumbel;
pub use marker::Marker;
pub use step::{Action, Gate, Membership, Scope, Step, Uniforms};

/// The distribution of one token's score in a text written without the key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Null {
    /// 1 with the given probability, else 0.
    Bernoulli(f64),
    /// Exponential with mean 1.
    Exponential,
}

impl Null {
    /// Whether a score is 1 or 0, so that a sum is a count of green tokens.
    #[must_use]
    pub fn counts(self) -> bool {
        matches!(self, Self::Bernoulli(_))
    }
}

/// Whether a scheme can mark a choice that leaves nothing to chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greedy {
    /// The mark moves the maximum, so greedy decoding is marked too.
    Marked,
    /// The mark lives in the draw: greedy decoding is refused.
    Refused,
}

/// A watermark under one key. Immutable and shared; the state of a request is a [`Marker`].
pub trait Scheme: Debug + Send + Sync {
    /// The name in profiles, reports and on the command line.
    fn name(&self) -> &'static str;

    /// The number of previous ids that seed a token's evidence.
    fn context_width(&self) -> usize;

    /// What the chain does after `context` (exactly [`Scheme::context_width`] ids, oldest first).
    fn step(&self, context: &[TokenId]) -> Step;

    /// The evidence of `token` after `context`; larger speaks for the mark.
    fn score(&self, context: &[TokenId], token: TokenId) -> f64;

    /// The distribution of [`Scheme::score`] in a text written without the key, the same for
    /// every token and independent between different effective inputs.
    fn null(&self) -> Null;

    /// The part of (context, token) that the score depends on, appended to `input`. Two tokens
    /// with the same effective input hold the same evidence and are counted once.
    fn effective_input(&self, context: &[TokenId], token: TokenId, input: &mut Vec<TokenId>);

    /// What greedy decoding does to the mark.
    fn greedy(&self) -> Greedy;
}

/// The scheme that `profile` describes, under `key`.
#[must_use]
pub fn build(profile: &Profile, key: &Key) -> Box<dyn Scheme> {
    let width = profile.context().width;
    match *profile.scheme() {
        SchemeParameters::GreenList { gamma, delta } => {
            Box::new(GreenList::new(key, gamma, delta, width))
        }
        SchemeParameters::Gumbel {} => Box::new(Gumbel::new(key, width)),
    }
}
