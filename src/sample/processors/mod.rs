//! The members of the chain: one file each, and the registry that lists them.
//!
//! A member's file says what it does, which paper or system defines it, its parameters and its
//! edges, reads its own options and checks them once. Adding a member is its file, its options
//! in [`SamplingOptions`](crate::sample::SamplingOptions), its place in the presets
//! ([`Order`](crate::sample::Order)) and one line in [`MEMBERS`]; `tests/sample` walks the
//! registry and fails when one of them is missing.
//!
//! Grammar masks come later as a member of kind [`Kind::Edit`], next to the bans, before every
//! penalty and truncation; a mask takes tokens out of play as `allowed_tokens` does, per step.

mod allowed_tokens;
mod bad_words;
mod dry;
mod epsilon;
mod eta;
mod frequency;
mod logit_bias;
mod min_p;
mod min_tokens;
pub(crate) mod mirostat;
mod no_repeat_ngram;
mod presence;
mod repetition;
mod temperature;
mod top_k;
mod top_n_sigma;
mod top_p;
mod typical;
pub(crate) mod watermark;
mod xtc;

use std::fmt::Debug;

use crate::error::{Error, Result};
use crate::sample::candidates::Candidates;
use crate::sample::draw::Draw;
use crate::sample::history::{History, PenaltyScope};
use crate::sample::kernel::{Form, StageKind};
use crate::sample::options::SamplingOptions;
use crate::token::TokenId;

/// What a member does, which decides where it may stand and when it is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Changes or bans single tokens; active under greedy decoding too.
    Edit,
    /// Divides all logits.
    Temperature,
    /// Drops unlikely tokens (or likely ones); Mirostat replaces all of these.
    Truncation,
    /// The mark, always last.
    Watermark,
}

/// An entry of the registry.
#[derive(Clone, Copy)]
pub struct Member {
    /// Its name in an order, in results and in errors; also the name of its file.
    pub name: &'static str,
    /// The fields of [`SamplingOptions`] it reads.
    pub options: &'static [&'static str],
    /// What it does.
    pub kind: Kind,
    /// Checks the options and builds the member, or nothing where they switch it off.
    pub(crate) build: fn(&Setup<'_>) -> Result<Option<Active>>,
}

impl Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member")
            .field("name", &self.name)
            .field("options", &self.options)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// Every member, in no particular order.
pub static MEMBERS: [&Member; 20] = [
    &logit_bias::MEMBER,
    &allowed_tokens::MEMBER,
    &bad_words::MEMBER,
    &min_tokens::MEMBER,
    &repetition::MEMBER,
    &frequency::MEMBER,
    &presence::MEMBER,
    &dry::MEMBER,
    &no_repeat_ngram::MEMBER,
    &temperature::MEMBER,
    &top_n_sigma::MEMBER,
    &top_k::MEMBER,
    &top_p::MEMBER,
    &min_p::MEMBER,
    &xtc::MEMBER,
    &typical::MEMBER,
    &epsilon::MEMBER,
    &eta::MEMBER,
    &mirostat::MEMBER,
    &watermark::MEMBER,
];

/// The member called `name`; `None` for an unknown name.
#[must_use]
pub fn member(name: &str) -> Option<&'static Member> {
    MEMBERS.iter().copied().find(|member| member.name == name)
}

/// What a member is built from.
pub(crate) struct Setup<'a> {
    pub(crate) options: &'a SamplingOptions,
    pub(crate) vocab: usize,
    pub(crate) end_ids: &'a [TokenId],
    /// What the repetition penalty counts.
    pub(crate) repetition_scope: PenaltyScope,
    /// What frequency and presence count.
    pub(crate) output_scope: PenaltyScope,
    /// The smallest number of tokens a truncation leaves.
    pub(crate) at_least: usize,
}

/// What a member may look at beside the candidates.
pub(crate) struct StepContext<'a> {
    pub(crate) history: &'a History,
    pub(crate) draw: Draw,
}

/// A member that was built.
pub(crate) type Active = Box<dyn Processor>;

/// A member at work. It never fails: emptiness is checked by the chain after each member.
pub(crate) trait Processor: Debug + Send + Sync {
    /// Changes the candidates.
    fn apply(&self, candidates: &mut Candidates, context: &StepContext<'_>);

    /// The same step as the device kernels are told of it.
    fn form(&self, context: &StepContext<'_>) -> Form<'_>;
}

impl Setup<'_> {
    /// Ids that must lie in the vocabulary.
    fn check(&self, ids: &[TokenId]) -> Result<()> {
        crate::token::check_ids(ids, self.vocab)
    }
}

/// A truncation as the kernels know it: its kind, its number and its value.
fn truncation(kind: StageKind, count: usize, value: f64) -> Form<'static> {
    Form::Truncation { kind, count, value }
}

/// An option that is a probability: `default` when not given.
fn probability(name: &'static str, given: Option<f64>, default: f64) -> Result<f64> {
    let value = given.unwrap_or(default);
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(Error::parameter(name, value, "0 to 1"))
}

/// An option that is added to or multiplied with logits: finite in f32.
fn finite(name: &'static str, given: Option<f64>, default: f64) -> Result<f32> {
    let value = given.unwrap_or(default);
    // The chain computes logits in f32; a value beyond its range becomes infinite here.
    #[expect(clippy::cast_possible_truncation, reason = "the result is checked")]
    let narrow = value as f32;
    if narrow.is_finite() {
        return Ok(narrow);
    }
    Err(Error::parameter(name, value, "a finite number within ±3.4e38"))
}
