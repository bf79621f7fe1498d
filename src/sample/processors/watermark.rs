//! The watermark: what a scheme's step does to the survivors of every other member.
//!
//! Source: Kirchenbauer et al. 2023, arXiv:2301.10226 (bias); Aaronson 2022 (race).
//! Parameters: none here; a scheme hands the chain a [`Step`] per token.
//! Definition: the gate looks at the distribution before the mark. A bias adds delta to the
//! logits of the members among the survivors, a race replaces the draw's noise. Ids that are
//! never marked (end-of-sequence, control tokens) get no bias and keep the draw's own noise, so
//! that the end of a text is not tied to the key.

use super::{Active, Kind, Member, Setup};
use crate::error::Result;
use crate::prf::ChaCha8Sweep;
use crate::sample::candidates::Candidates;
use crate::scheme::{Action, Gate, Membership, Scope, Step, Uniforms};
use crate::token::{TokenId, TokenSet};

/// The member's name.
pub(crate) const NAME: &str = "watermark";

pub(super) const MEMBER: Member = Member { name: NAME, options: &[], kind: Kind::Watermark, build };

// The mark changes from step to step, so it is no processor; the chain calls `apply` last.
#[expect(clippy::unnecessary_wraps, reason = "the registry's signature")]
fn build(_setup: &Setup<'_>) -> Result<Option<Active>> {
    Ok(None)
}

/// What the mark did.
#[derive(Debug, Default)]
pub(crate) struct Marked {
    /// The probability of the biased tokens before the bias.
    pub(crate) green_mass: Option<f64>,
    /// The noise that replaces the draw's.
    pub(crate) race: Option<Uniforms>,
}

/// Applies `step` to the candidates, whose distribution before the mark has the given entropy
/// (nats) and largest probability.
pub(crate) fn apply(
    step: Step,
    candidates: &mut Candidates,
    never_marked: &TokenSet,
    entropy: f64,
    max_probability: f64,
) -> Marked {
    let open = match step.gate {
        Gate::Always => true,
        Gate::EntropyAbove(threshold) => entropy > threshold,
        Gate::MaxProbAtMost(threshold) => max_probability <= threshold,
    };
    if !open {
        return Marked::default();
    }
    match step.action {
        Action::Keep => Marked::default(),
        Action::Race { uniforms } => Marked { race: Some(uniforms), ..Marked::default() },
        Action::Bias { membership, delta, scope } => {
            let total = candidates.normalizer().total;
            let green = bias(candidates, membership, delta, scope, never_marked);
            Marked { green_mass: Some(green as f64 / total as f64), ..Marked::default() }
        }
    }
}

/// Adds the bias and returns the mass of the biased tokens before it.
fn bias(
    candidates: &mut Candidates,
    membership: Membership,
    delta: f32,
    scope: Scope,
    never_marked: &TokenSet,
) -> u64 {
    let mut green = Green::new(membership, candidates);
    let mut markable = |id| green.contains(id) & !never_marked.contains(id);
    match scope {
        Scope::TopByScore(count) if count < candidates.live() => {
            let best = candidates.best_ids(count);
            candidates.add(delta, |id| markable(id) && best.binary_search(&id).is_ok())
        }
        Scope::TopByScore(_) | Scope::Survivors => candidates.add(delta, markable),
    }
}

/// The membership test, for ids in ascending order.
enum Green {
    /// Several blocks at once, where most ids are asked for.
    Sweep(Box<ChaCha8Sweep>, u32),
    /// One id at a time.
    Single(Membership),
}

impl Green {
    fn new(membership: Membership, candidates: &Candidates) -> Self {
        match membership {
            Membership::ChaCha8 { stream, threshold }
                if candidates.live() >= candidates.span() / SWEEP_ABOVE =>
            {
                Self::Sweep(Box::new(stream.sweep()), threshold)
            }
            other => Self::Single(other),
        }
    }

    #[inline]
    fn contains(&mut self, id: TokenId) -> bool {
        match self {
            Self::Sweep(sweep, threshold) => sweep.word(u64::from(id)) < *threshold,
            Self::Single(membership) => membership.contains(id),
        }
    }
}

/// A block holds 16 tokens' words; with fewer candidates than one in so many ids, single blocks
/// are cheaper than a sweep.
const SWEEP_ABOVE: usize = 64;
