//! Tails of weighted sums of independent trials.

use super::LogProbability;

/// One independent trial of a weighted sum: adds `weight` with chance `rate`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// What a success adds; finite and at least 0.
    pub weight: f64,
    /// Chance of a success, 0 to 1.
    pub rate: f64,
}

/// How the bounds of a tail were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TailMethod {
    /// The sum of the probabilities themselves.
    Exact,
    /// Rounding to a lattice, with a certified error.
    Lattice,
    /// Chernoff's bound: valid, not tight.
    Chernoff,
}

/// A probability between two certified bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailBounds {
    /// The probability is at least this.
    pub lower: LogProbability,
    /// The probability is at most this: decide on it.
    pub upper: LogProbability,
    /// How the bounds were found.
    pub method: TailMethod,
}

/// P(sum >= x): certified bounds; decide on `upper`.
#[must_use]
pub fn weighted_upper(trials: &[Trial], x: f64) -> TailBounds {
    let cumulants = |theta: f64| -> f64 {
        trials
            .iter()
            .map(|trial| {
                let tilt = theta * trial.weight;
                tilt + (trial.rate - (trial.rate - 1.0) * (-tilt).exp()).ln()
            })
            .sum()
    };
    let total: f64 = trials.iter().map(|trial| trial.weight).sum();
    let exponent = |ln_theta: f64| cumulants(ln_theta.exp()) - ln_theta.exp() * x;
    // The exponent is convex in theta; any theta gives a valid bound.
    let (mut low, mut high) = (-40.0 - (total + 1e-300).ln(), 40.0 - (total + 1e-300).ln());
    for _ in 0..200 {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if exponent(a) < exponent(b) {
            high = b;
        } else {
            low = a;
        }
    }
    let upper = LogProbability::from_ln(exponent(low.midpoint(high)));
    TailBounds {
        lower: LogProbability::from_ln(f64::NEG_INFINITY),
        upper,
        method: TailMethod::Chernoff,
    }
}

/// Smallest threshold x whose upper bound is at most alpha; `None` when even the largest sum is
/// not that rare.
#[must_use]
pub fn weighted_threshold(trials: &[Trial], alpha: LogProbability) -> Option<f64> {
    let total: f64 = trials.iter().map(|trial| trial.weight).sum();
    if weighted_upper(trials, total).upper > alpha {
        return None;
    }
    let (mut low, mut high) = (0.0, total);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if weighted_upper(trials, middle).upper <= alpha {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}
