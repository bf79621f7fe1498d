//! What a scheme tells the sampling chain to do at one step, as data.
//!
//! The same value drives the CPU chain and, later, the device kernels, so it never holds
//! anything the size of the vocabulary: memberships and uniforms are descriptors that are
//! evaluated only for the candidates where they can matter.

use std::sync::Arc;

use crate::prf::ChaCha8Stream;
use crate::token::{TokenId, TokenSet};

/// The mark's part in one step of the chain.
#[derive(Clone, Debug)]
pub struct Step {
    /// When the action applies at all.
    pub gate: Gate,
    /// What is done to the survivors of every other processor.
    pub action: Action,
}

impl Step {
    /// A step without a mark.
    pub const KEEP: Self = Self { gate: Gate::Always, action: Action::Keep };
}

/// A condition on the distribution before the mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gate {
    /// No condition.
    Always,
    /// Only where the Shannon entropy of the survivors, in nats, is above the value.
    EntropyAbove(f64),
    /// Only where the most likely survivor's probability is at most the value.
    MaxProbAtMost(f64),
}

/// What the mark does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Nothing: the draw is the chain's own.
    Keep,
    /// Adds `delta` to the logits of the members.
    Bias {
        /// Which tokens are green.
        membership: Membership,
        /// The addition, in logits.
        delta: f32,
        /// Among which candidates.
        scope: Scope,
    },
    /// Replaces the draw's noise: the survivor with the largest ln p - ln(-ln u) is taken.
    Race {
        /// The keyed uniforms.
        uniforms: Uniforms,
    },
}

/// Among which candidates members are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every token that survived the other processors.
    Survivors,
    /// The given number of best survivors by logit, ties to the smaller id.
    TopByScore(usize),
}

/// A set of tokens given by a rule.
#[derive(Clone, Debug)]
pub enum Membership {
    /// `word(t) < threshold`, word(t) being the t-th u32 of a ChaCha8 key stream.
    ChaCha8 {
        /// The stream under the context's seed.
        stream: ChaCha8Stream,
        /// floor(gamma * 2^32).
        threshold: u32,
    },
    /// An explicit set, for dialects whose list is a permutation.
    Set(Arc<TokenSet>),
}

impl Membership {
    /// Whether `token` is a member.
    pub fn contains(&mut self, token: TokenId) -> bool {
        match self {
            Self::ChaCha8 { stream, threshold } => stream.word(u64::from(token)) < *threshold,
            Self::Set(set) => set.contains(token),
        }
    }
}

/// One uniform number per token, given by a rule.
#[derive(Clone, Debug)]
pub enum Uniforms {
    /// The u64 at words 2t and 2t+1 (low word first) of a ChaCha8 key stream, as (x + 1/2) / 2^64.
    ChaCha8 {
        /// The stream under the context's seed.
        stream: ChaCha8Stream,
    },
}

impl Uniforms {
    /// The token's 64 random bits; the uniform number is (bits + 1/2) / 2^64.
    pub fn bits(&mut self, token: TokenId) -> u64 {
        match self {
            Self::ChaCha8 { stream } => stream.word_pair(u64::from(token)),
        }
    }
}
