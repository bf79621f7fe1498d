//! Locally typical sampling: keeps the tokens whose surprisal is closest to the entropy.
//!
//! Source: Meister et al. 2022, arXiv:2202.00666.
//! Parameters: `typical_p` in [0, 1]; 1 is off, 0 keeps the most typical token only.
//! Definition: tokens are ordered by |-ln p - H| (in f32), closest first, and dropped when the
//! mass before them is at least the parameter - 1e-7. The most likely token may go.
//! Edges: ties go to the smaller id.

use super::{Active, Kind, Member, Processor, Setup, StepContext, probability, truncation};
use crate::error::Result;
use crate::sample::candidates::{Candidates, TOLERANCE};
use crate::sample::kernel::{Form, StageKind};
use crate::sample::math;

pub(super) const MEMBER: Member =
    Member { name: "typical", options: &["typical_p"], kind: Kind::Truncation, build };

#[derive(Debug)]
struct Typical {
    p: f64,
    at_least: usize,
}

fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let p = probability("typical_p", setup.options.typical_p, 1.0)?;
    Ok((p < 1.0).then(|| Box::new(Typical { p, at_least: setup.at_least }) as _))
}

impl Processor for Typical {
    fn apply(&self, candidates: &mut Candidates, _context: &StepContext<'_>) {
        let entropy = candidates.entropy();
        // -ln p = ln Z - (l - max), so the constant part is taken together once.
        let offset = math::ln_mass(candidates.normalizer().total) - entropy;
        let limit = candidates.mass_of_probability(self.p - TOLERANCE);
        candidates.keep_mass_ranked_by(
            |logit, normalizer| {
                #[expect(clippy::cast_possible_truncation, reason = "the order is that of f32")]
                let deviation = (offset - f64::from(logit - normalizer.max)).abs() as f32;
                !math::rank_key(deviation)
            },
            limit,
            self.at_least,
        );
    }

    fn form(&self, _context: &StepContext<'_>) -> Form<'_> {
        truncation(StageKind::Typical, self.at_least, self.p)
    }
}
