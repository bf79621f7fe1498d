//! Presence penalty: a token that has appeared loses the coefficient, however often.
//!
//! Source: the `presence_penalty` of chat-completion interfaces.
//! Parameters: `presence_penalty`, a finite number; 0 is off, below 0 favours repetition.
//! Definition: the coefficient is subtracted once.
//! Scope: the output; a window over prompt and output in the `llama.cpp` preset or with
//! `penalty_last_n`.

use super::{Active, Kind, Member, Processor, Setup, StepContext, finite};
use crate::error::Result;
use crate::sample::candidates::Candidates;
use crate::sample::history::PenaltyScope;
use crate::sample::kernel::Form;

pub(super) const MEMBER: Member = Member {
    name: "presence",
    options: &["presence_penalty", "penalty_last_n"],
    kind: Kind::Edit,
    build,
};

#[derive(Debug)]
struct Presence {
    coefficient: f32,
    scope: PenaltyScope,
}

fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let coefficient = finite("presence_penalty", setup.options.presence_penalty, 0.0)?;
    Ok((coefficient != 0.0)
        .then(|| Box::new(Presence { coefficient, scope: setup.output_scope }) as _))
}

impl Processor for Presence {
    fn apply(&self, candidates: &mut Candidates, context: &StepContext<'_>) {
        context.history.for_each_count(self.scope, |id, _| {
            candidates.edit(id, |logit| logit - self.coefficient);
        });
    }

    fn form(&self, _context: &StepContext<'_>) -> Form<'_> {
        Form::Presence(self.coefficient)
    }
}
