//! Eta cutoff: the epsilon cutoff, loosened where the distribution is flat.
//!
//! Source: Hewitt et al. 2022, arXiv:2210.15191.
//! Parameters: `eta_cutoff` epsilon in [0, 1]; 0 is off.
//! Definition: a token stays when p >= min(epsilon, sqrt(epsilon) * exp(-H)) - 1e-7, H being the
//! entropy in nats. The best always stays.

use super::{Active, Kind, Member, Processor, Setup, StepContext, probability, truncation};
use crate::error::Result;
use crate::sample::candidates::{Candidates, TOLERANCE};
use crate::sample::kernel::{Form, StageKind};
use crate::sample::math;

pub(super) const MEMBER: Member =
    Member { name: "eta", options: &["eta_cutoff"], kind: Kind::Truncation, build };

#[derive(Debug)]
struct Eta {
    epsilon: f64,
    at_least: usize,
}

fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let epsilon = probability("eta_cutoff", setup.options.eta_cutoff, 0.0)?;
    Ok((epsilon > 0.0).then(|| Box::new(Eta { epsilon, at_least: setup.at_least }) as _))
}

impl Processor for Eta {
    fn apply(&self, candidates: &mut Candidates, _context: &StepContext<'_>) {
        let entropy = candidates.entropy();
        let threshold = self.epsilon.min(self.epsilon.sqrt() * math::exp(-entropy));
        let limit = candidates.mass_of_probability(threshold - TOLERANCE);
        candidates.keep_heavy(limit, self.at_least);
    }

    fn form(&self, _context: &StepContext<'_>) -> Form<'_> {
        truncation(StageKind::Eta, self.at_least, self.epsilon)
    }
}
