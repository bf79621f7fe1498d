//! XTC (exclude top choices): sometimes drops every likely token but the least likely of them.
//!
//! Source: text-generation-webui, also in llama.cpp.
//! Parameters: `xtc.probability` in [0, 1] (0 is off) and `xtc.threshold` in [0, 1] (0.1; above
//! 0.5 it can never act, since two tokens cannot both be that likely).
//! Definition: with the given probability, of the tokens with p >= threshold - 1e-7 all but the
//! last (in order of probability, ties by ascending id) are dropped. Nothing happens when there
//! are fewer than two.
//! Randomness: one u64 of a stream of its own (tag `greenmark/xtc/1`) per request seed, sample
//! and step, so switching it on does not shift the draw's noise.

use super::{Active, Kind, Member, Processor, Setup, StepContext, probability, truncation};
use crate::error::Result;
use crate::prf::{ChaCha8Stream, PrfTag, draw_seed};
use crate::sample::candidates::{Candidates, TOLERANCE};
use crate::sample::draw::Draw;
use crate::sample::kernel::{Form, StageKind};
use crate::sample::math;

pub(super) const MEMBER: Member =
    Member { name: "xtc", options: &["xtc"], kind: Kind::Truncation, build };

const TAG: PrfTag = PrfTag::new("greenmark/xtc/1");

#[derive(Debug)]
struct Xtc {
    probability: f64,
    threshold: f64,
}

fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let Some(given) = &setup.options.xtc else { return Ok(None) };
    let threshold = probability("xtc.threshold", Some(given.threshold), 0.0)?;
    let probability = probability("xtc.probability", Some(given.probability), 0.0)?;
    Ok((probability > 0.0 && threshold <= 0.5)
        .then(|| Box::new(Xtc { probability, threshold }) as _))
}

impl Processor for Xtc {
    fn apply(&self, candidates: &mut Candidates, context: &StepContext<'_>) {
        if !self.acts(context.draw) {
            return;
        }
        let limit = candidates.mass_of_probability(self.threshold - TOLERANCE);
        let (ids, logits, masses, _) = candidates.weighted();
        let mut likely = 0usize;
        let mut last = None;
        for ((&id, &logit), &mass) in ids.iter().zip(logits).zip(masses) {
            if logit > f32::NEG_INFINITY && mass >= limit {
                likely += 1;
                let key = math::rank_key(logit);
                if last.is_none_or(|(least, _)| key <= least) {
                    last = Some((key, id));
                }
            }
        }
        if let Some((_, spared)) = last
            && likely > 1
        {
            candidates.keep(|id, _, mass| mass < limit || id == spared);
        }
    }

    fn form(&self, context: &StepContext<'_>) -> Form<'_> {
        // The coin is thrown here: its seed is a hash, which the kernels do not have.
        if self.acts(context.draw) {
            truncation(StageKind::Xtc, 0, self.threshold)
        } else {
            Form::Idle
        }
    }
}

impl Xtc {
    fn acts(&self, draw: Draw) -> bool {
        let seed = draw_seed(TAG, draw.seed, draw.sample, draw.step);
        // 53 bits of the coin are as many as the probability has.
        let coin = (ChaCha8Stream::new(&seed).word_pair(0) >> 11) as f64 / (1u64 << 53) as f64;
        coin < self.probability
    }
}
