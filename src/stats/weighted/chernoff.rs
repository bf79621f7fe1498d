//! Chernoff's bound: P(S >= x) <= e^(K(theta) - theta x) for every theta above 0.

use super::tilt::Sum;
use super::{TailBounds, TailMethod};
use crate::stats::LogProbability;

/// A lower tail below this is not worth an inversion: the bounds are 1 - 1e-4 and 1.
const NEGLIGIBLE_LN: f64 = -9.21;

/// The upper bound at the saddle point, and as lower bound the chance that the likeliest few
/// trials which reach the value together all succeed.
pub(super) fn bounds(sum: &Sum) -> TailBounds {
    let upper = ln_tail(sum, sum.saddle());
    // The best chance for the weight first.
    let mut by_cost: Vec<_> = sum.trials().to_vec();
    by_cost.sort_by(|a, b| (a.rate.ln() / a.weight).total_cmp(&(b.rate.ln() / b.weight)).reverse());
    let (mut reached, mut ln) = (0.0, 0.0);
    for trial in by_cost {
        if reached >= sum.certain_reach() {
            break;
        }
        reached += trial.weight;
        ln += trial.rate.ln();
    }
    TailBounds {
        lower: LogProbability::from_ln(ln * (1.0 + 1e-9)),
        upper: LogProbability::from_ln(upper),
        method: TailMethod::Chernoff,
    }
}

/// Bounds when the sum falls short of the value in less than one case of ten thousand.
pub(super) fn almost_certain(sum: &Sum) -> Option<TailBounds> {
    let (mean, variance) = sum.tilted_moments(0.0);
    if sum.reach() >= mean {
        return None;
    }
    let deviation = variance.sqrt();
    let ln_short = [2.0, 4.0, 8.0, 16.0]
        .map(|steps| steps / deviation)
        .map(|theta| ln_with_rounding(sum, sum.cumulant(-theta), -theta))
        .into_iter()
        .fold(0.0, f64::min);
    (ln_short <= NEGLIGIBLE_LN).then(|| TailBounds {
        lower: LogProbability::from_ln((-ln_short.exp()).ln_1p()),
        upper: LogProbability::ONE,
        method: TailMethod::Chernoff,
    })
}

/// ln of the bound at one tilt, rounding included.
fn ln_tail(sum: &Sum, theta: f64) -> f64 {
    ln_with_rounding(sum, sum.cumulant(theta), theta)
}

fn ln_with_rounding(sum: &Sum, cumulant: f64, theta: f64) -> f64 {
    let shift = theta * sum.reach();
    cumulant - shift + rounding(sum, cumulant, theta)
}

/// A bound on the rounding error of K(theta) - theta x: a few units in the last place of every
/// term, whose size is at most theta times the weight, or 1 where theta is below 0.
pub(super) fn rounding(sum: &Sum, cumulant: f64, theta: f64) -> f64 {
    let terms = cumulant.abs() + theta.abs() * (sum.total() + sum.reach()) + sum.len() as f64;
    8.0 * f64::EPSILON * terms
}
