//! Top-n-sigma: keeps the tokens within n standard deviations of the best logit.
//!
//! Source: Tang et al. 2024, arXiv:2411.07641.
//! Parameters: `top_n_sigma` n >= 0; 0 is off.
//! Definition: a token stays when its logit is at least max - n * sigma, sigma being the
//! population standard deviation of the logits in play (banned ones do not count). Scaling all
//! logits scales sigma too, so its place before or after the temperature does not matter.
//! Arithmetic: the distances below the best logit are cut to multiples of 2^-20 (more where they
//! exceed 2^14) and summed with their squares as integers, so sigma does not depend on the order
//! of summation.

use super::{Active, Kind, Member, Processor, Setup, StepContext, truncation};
use crate::error::{Error, Result};
use crate::sample::candidates::Candidates;
use crate::sample::kernel::{Form, StageKind};

pub(super) const MEMBER: Member =
    Member { name: "top_n_sigma", options: &["top_n_sigma"], kind: Kind::Truncation, build };

/// Units of distance per nat, unless the logits spread wider than 2^14 nats.
const UNIT: f64 = 1_048_576.0;
/// The largest distance in units: 2^34.
const FARTHEST: f64 = 17_179_869_184.0;

/// The units per nat for logits that spread over `range` nats: a power of two, so that the
/// distances of a scaled row are the scaled distances.
fn unit(range: f64) -> f64 {
    let mut unit = UNIT;
    while range * unit > FARTHEST {
        unit *= 0.5;
    }
    unit
}

#[derive(Debug)]
struct TopNSigma {
    n: f64,
    at_least: usize,
}

fn build(setup: &Setup<'_>) -> Result<Option<Active>> {
    let n = setup.options.top_n_sigma.unwrap_or(0.0);
    if !(n.is_finite() && n >= 0.0) {
        return Err(Error::parameter("top_n_sigma", n, "0 (off) or above"));
    }
    Ok((n > 0.0).then(|| Box::new(TopNSigma { n, at_least: setup.at_least }) as _))
}

impl Processor for TopNSigma {
    fn apply(&self, candidates: &mut Candidates, _context: &StepContext<'_>) {
        let max = candidates.normalizer().max;
        let distance = |logit: f32| f64::from(max) - f64::from(logit);
        let live = candidates.entries().filter(|&(_, logit)| logit > f32::NEG_INFINITY);
        let unit = unit(live.map(|(_, logit)| distance(logit)).fold(0.0, f64::max));
        let (mut count, mut sum, mut squares) = (0u64, 0u64, 0u128);
        for (_, logit) in candidates.entries().filter(|&(_, logit)| logit > f32::NEG_INFINITY) {
            // At most 2^34: the sum over 2^20 candidates fits u64, that of the squares u128.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and 2^34"
            )]
            let distance = (distance(logit) * unit) as u64;
            count += 1;
            sum += distance;
            squares += u128::from(distance) * u128::from(distance);
        }
        // count * squares - sum^2 is exact and not negative (Cauchy-Schwarz).
        let spread = u128::from(count) * squares - u128::from(sum) * u128::from(sum);
        let sigma = (spread as f64).sqrt() / (count as f64 * unit);
        #[expect(clippy::cast_possible_truncation, reason = "logits are compared in f32")]
        let lowest = (f64::from(max) - self.n * sigma) as f32;
        candidates.keep_logits_from(lowest, self.at_least);
    }

    fn form(&self, _context: &StepContext<'_>) -> Form<'_> {
        truncation(StageKind::TopNSigma, self.at_least, self.n)
    }
}
