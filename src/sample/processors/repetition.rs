//! Repetition penalty: tokens that have appeared become less likely, once per distinct token.
//!
//! Source: Keskar et al. 2019 (CTRL), arXiv:1909.05858, with the sign rule of transformers.
//! Parameters: `repetition_penalty` r > 0; 1 is off, below 1 favours repetition.
//! Definition: a positive logit is divided by r, a negative one multiplied, so that r > 1 always
//! lowers it.
//! Scope: prompt and output; a window in the `llama.cpp` preset or with `penalty_last_n`.

use super::{Active, Kind, Member, Processor, Setup, StepContext, finite};
use crate::error::{Error, Result};
use crate::sample::candidates::Candidates;
use crate::sample::history::PenaltyScope;
use crate::sample::kernel::Form;

pub(super) const MEMBER: Member = Member {
    name: "repetition",
    options: &["repetition_penalty", "penalty_last_n"],
    kind: Kind::Edit,
    build,
};

#[derive(Debug)]
struct Repetition {
    penalty: f32,
    scope: PenaltyScope,
}

#[expect(clippy::float_cmp, reason = "exactly 1 is the neutral element")]
fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let given = setup.options.repetition_penalty;
    let penalty = finite("repetition_penalty", given, 1.0)?;
    if penalty <= 0.0 {
        return Err(Error::parameter(
            "repetition_penalty",
            given.unwrap_or_default(),
            "a number above 0; 1 is off",
        ));
    }
    Ok((penalty != 1.0)
        .then(|| Box::new(Repetition { penalty, scope: setup.repetition_scope }) as _))
}

impl Processor for Repetition {
    fn apply(&self, candidates: &mut Candidates, context: &StepContext<'_>) {
        context.history.for_each_count(self.scope, |id, _| {
            candidates.edit(id, |logit| {
                if logit < 0.0 { logit * self.penalty } else { logit / self.penalty }
            });
        });
    }

    fn form(&self, _context: &StepContext<'_>) -> Form<'_> {
        Form::Repetition(self.penalty)
    }
}
