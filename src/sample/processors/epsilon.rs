//! Epsilon cutoff: keeps the tokens of at least a fixed probability.
//!
//! Source: Hewitt et al. 2022, arXiv:2210.15191.
//! Parameters: `epsilon_cutoff` in [0, 1]; 0 is off.
//! Definition: a token stays when p >= epsilon - 1e-7. The best always stays.

use super::{Active, Kind, Member, Processor, Setup, StepContext, probability, truncation};
use crate::error::Result;
use crate::sample::candidates::{Candidates, TOLERANCE};
use crate::sample::kernel::{Form, StageKind};

pub(super) const MEMBER: Member =
    Member { name: "epsilon", options: &["epsilon_cutoff"], kind: Kind::Truncation, build };

#[derive(Debug)]
struct Epsilon {
    epsilon: f64,
    at_least: usize,
}

fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let epsilon = probability("epsilon_cutoff", setup.options.epsilon_cutoff, 0.0)?;
    Ok((epsilon > 0.0).then(|| Box::new(Epsilon { epsilon, at_least: setup.at_least }) as _))
}

impl Processor for Epsilon {
    fn apply(&self, candidates: &mut Candidates, _context: &StepContext<'_>) {
        let limit = candidates.mass_of_probability(self.epsilon - TOLERANCE);
        candidates.keep_heavy(limit, self.at_least);
    }

    fn form(&self, _context: &StepContext<'_>) -> Form<'_> {
        truncation(StageKind::Epsilon, self.at_least, self.epsilon)
    }
}
