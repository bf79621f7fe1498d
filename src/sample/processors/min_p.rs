//! Min-p: keeps the tokens at least alpha times as likely as the best.
//!
//! Source: Nguyen et al. 2024, arXiv:2407.01082.
//! Parameters: `min_p` alpha in [0, 1]; 0 is off.
//! Definition: a token stays when p >= alpha times the best probability - 1e-7.

use super::{Active, Kind, Member, Processor, Setup, StepContext, probability, truncation};
use crate::error::Result;
use crate::sample::candidates::{Candidates, TOLERANCE};
use crate::sample::kernel::{Form, StageKind};
use crate::sample::math::MASS_ONE;

pub(super) const MEMBER: Member =
    Member { name: "min_p", options: &["min_p"], kind: Kind::Truncation, build };

#[derive(Debug)]
struct MinP {
    alpha: f64,
    at_least: usize,
}

fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let alpha = probability("min_p", setup.options.min_p, 0.0)?;
    Ok((alpha > 0.0).then(|| Box::new(MinP { alpha, at_least: setup.at_least }) as _))
}

impl Processor for MinP {
    fn apply(&self, candidates: &mut Candidates, _context: &StepContext<'_>) {
        let max_probability = MASS_ONE as f64 / candidates.normalizer().total as f64;
        let limit = candidates.mass_of_probability(self.alpha * max_probability - TOLERANCE);
        candidates.keep_heavy(limit, self.at_least);
    }

    fn form(&self, _context: &StepContext<'_>) -> Form<'_> {
        truncation(StageKind::MinP, self.at_least, self.alpha)
    }
}
