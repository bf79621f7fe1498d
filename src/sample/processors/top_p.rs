//! Top-p (nucleus): keeps the shortest prefix of the best tokens whose probability reaches p.
//!
//! Source: Holtzman et al. 2019, arXiv:1904.09751.
//! Parameters: `top_p` in [0, 1]; 1 is off, 0 keeps the best token only.
//! Definition: probabilities are those over what earlier members left. A token is dropped when
//! the mass before it is at least p - 1e-7, so a sum that lands on p does not draw in one more.
//! Edges: ties at the end of the prefix go to the smaller id.

use super::{Active, Kind, Member, Processor, Setup, StepContext, probability, truncation};
use crate::error::Result;
use crate::sample::candidates::{Candidates, TOLERANCE};
use crate::sample::kernel::{Form, StageKind};

pub(super) const MEMBER: Member =
    Member { name: "top_p", options: &["top_p"], kind: Kind::Truncation, build };

#[derive(Debug)]
struct TopP {
    p: f64,
    at_least: usize,
}

fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let p = probability("top_p", setup.options.top_p, 1.0)?;
    Ok((p < 1.0).then(|| Box::new(TopP { p, at_least: setup.at_least }) as _))
}

impl Processor for TopP {
    fn apply(&self, candidates: &mut Candidates, _context: &StepContext<'_>) {
        let limit = candidates.mass_of_probability(self.p - TOLERANCE);
        candidates.keep_mass(limit, self.at_least);
    }

    fn form(&self, _context: &StepContext<'_>) -> Form<'_> {
        truncation(StageKind::TopP, self.at_least, self.p)
    }
}
