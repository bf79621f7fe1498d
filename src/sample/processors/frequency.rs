//! Frequency penalty: each earlier appearance lowers a token's logit by the coefficient.
//!
//! Source: the `frequency_penalty` of chat-completion interfaces.
//! Parameters: `frequency_penalty`, a finite number; 0 is off, below 0 favours repetition.
//! Definition: the coefficient times the number of appearances is subtracted.
//! Scope: the output; a window over prompt and output in the `llama.cpp` preset or with
//! `penalty_last_n`.

use super::{Active, Kind, Member, Processor, Setup, StepContext, finite};
use crate::error::Result;
use crate::sample::candidates::Candidates;
use crate::sample::history::PenaltyScope;
use crate::sample::kernel::Form;

pub(super) const MEMBER: Member = Member {
    name: "frequency",
    options: &["frequency_penalty", "penalty_last_n"],
    kind: Kind::Edit,
    build,
};

#[derive(Debug)]
struct Frequency {
    coefficient: f32,
    scope: PenaltyScope,
}

fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let coefficient = finite("frequency_penalty", setup.options.frequency_penalty, 0.0)?;
    Ok((coefficient != 0.0)
        .then(|| Box::new(Frequency { coefficient, scope: setup.output_scope }) as _))
}

impl Processor for Frequency {
    fn apply(&self, candidates: &mut Candidates, context: &StepContext<'_>) {
        context.history.for_each_count(self.scope, |id, count| {
            candidates.edit(id, |logit| logit - count as f32 * self.coefficient);
        });
    }

    fn form(&self, _context: &StepContext<'_>) -> Form<'_> {
        Form::Frequency(self.coefficient)
    }
}
