//! The exponents behind the search: Chernoff's bound of a window's tail is the largest of its
//! linear scores.
//!
//! For a tilt `t` the score of a window is t * sum - n * cumulant(t); its maximum over t is the
//! Chernoff exponent of the window, so the best window for each t of a fine grid is a near-best
//! window of all (Legendre duality). One tilt is one maximum-sum segment, linear in time.

use crate::scheme::Null;

/// Steps of the grid. Halfway between two tilts of ratio r about (ln r)^2 / 4 of the exponent is
/// lost, 1.2 percent here; the search follows the candidates to their own tilt after.
const RATIO: f64 = 1.25;

/// One exponential tilt of the null.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tilt {
    /// What a unit of score is worth.
    pub(super) slope: f64,
    /// What each token costs.
    pub(super) cost: f64,
}

impl Tilt {
    fn new(null: Null, slope: f64) -> Self {
        let cost = match null {
            Null::Bernoulli(rate) => (rate * slope.exp_m1()).ln_1p(),
            Null::Exponential => -(-slope).ln_1p(),
        };
        Self { slope, cost }
    }

    /// The tilt under which a score has this mean, which lies above that of the null.
    fn of_mean(null: Null, mean: f64) -> Self {
        Self::new(
            null,
            match null {
                Null::Bernoulli(rate) => (mean * (1.0 - rate) / ((1.0 - mean) * rate)).ln(),
                Null::Exponential => 1.0 - 1.0 / mean,
            },
        )
    }

    /// The tilt that is best for a window of `scored` tokens with this sum, if it lies above the
    /// mean of the null.
    pub(super) fn of_window(null: Null, scored: usize, sum: f64) -> Option<Self> {
        let n = scored as f64;
        let (lowest, highest) = match null {
            // All green has no finite tilt; half a red token less has, and loses nothing that the
            // exact tail does not give back.
            Null::Bernoulli(rate) => (rate, 1.0 - 0.5 / (n + 1.0)),
            Null::Exponential => (1.0, f64::INFINITY),
        };
        let mean = (sum / n).min(highest);
        (mean > lowest).then(|| Self::of_mean(null, mean))
    }

    /// The tilts that matter for sequences of `scored` tokens, the mildest first.
    pub(super) fn grid(null: Null, scored: usize, largest: f64) -> Vec<Self> {
        let n = scored.max(1) as f64;
        // Milder tilts than one standard deviation of the whole sequence find nothing rarer than
        // the whole sequence.
        let (mildest, strongest) = match null {
            Null::Bernoulli(rate) => {
                let odds = (1.0 - rate) / rate;
                (1.0 / (n * rate * (1.0 - rate)).sqrt(), (2.0 * n + 2.0).ln() + odds.ln().max(0.0))
            }
            Null::Exponential => (1.0 / n.sqrt(), largest.max(2.0).ln()),
        };
        let mut tilts = Vec::new();
        let mut step = mildest.min(strongest);
        loop {
            tilts.push(match null {
                Null::Bernoulli(_) => Self::new(null, step),
                Null::Exponential => Self::of_mean(null, step.exp()),
            });
            if step >= strongest {
                return tilts;
            }
            step = (step * RATIO).min(strongest);
        }
    }
}

/// Chernoff's exponent: the tail of a window of `n` tokens with this sum is at most e to minus
/// this; 0 at or below the mean.
pub(super) fn exponent(null: Null, n: f64, sum: f64) -> f64 {
    let mean = sum / n;
    match null {
        Null::Bernoulli(rate) => {
            if mean <= rate {
                0.0
            } else if sum >= n {
                -n * rate.ln()
            } else {
                n * (mean * (mean / rate).ln() + (1.0 - mean) * ((1.0 - mean) / (1.0 - rate)).ln())
            }
        }
        Null::Exponential => {
            if mean <= 1.0 {
                0.0
            } else {
                n * (mean - 1.0 - mean.ln())
            }
        }
    }
}

/// How far above Chernoff's exponent -ln of the exact tail can lie, for a window above the mean.
///
/// Counts: R. Ash, "Information Theory", 1965, lemma 4.7.2, with k (n - k) / n at most n / 4.
/// Sums: the first term of Q(n, x) and n! <= e sqrt(n) (n / e)^n.
pub(super) fn slack(null: Null, n: f64, sum: f64) -> f64 {
    match null {
        Null::Bernoulli(_) => 0.5 * (2.0 * n).ln(),
        Null::Exponential => 1.0 + 0.5 * n.ln() + (sum / n).ln().max(0.0),
    }
}
