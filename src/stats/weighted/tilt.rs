//! The sum of independent trials and its exponential tilts.
//!
//! Tilting multiplies the probability of every outcome s by e^(theta s) and divides by the moment
//! generating function. A rare outcome becomes a common one, so that nothing underflows.

use super::Trial;

/// Trials that can go either way, and the value to reach. Weights are scaled by a power of two,
/// which rounds nothing, so that the largest lies in 1..2.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    trials: Vec<Trial>,
    /// The value to reach, lowered by the tolerance for ties.
    reach: f64,
    /// The sum of all weights.
    total: f64,
    /// How far rounding may shift a sum of weights, and the value to reach, against each other.
    doubt: f64,
}

/// Tilt times the sum of the weights, and the number of trials and 16 more: times a unit in the
/// last place, that is an error of 2e-4.
const LARGEST_TILT: f64 = 1e12;

impl Sum {
    /// `None` when `x` is reached for certain.
    pub(super) fn new(trials: &[Trial], x: f64) -> Option<Self> {
        let mut open = Vec::with_capacity(trials.len());
        let (mut certain, mut all) = (0.0, 0.0);
        for &Trial { weight, rate } in trials {
            if rate <= 0.0 || weight.is_nan() || weight <= 0.0 {
                continue;
            }
            all += weight;
            if rate < 1.0 {
                open.push(Trial { weight, rate });
            } else {
                certain += weight;
            }
        }
        let reach = x - certain - trials.len() as f64 * f64::EPSILON * all;
        // NaN is reached too: it accuses nobody.
        if reach.is_nan() || reach <= 0.0 {
            return None;
        }
        let largest = open.iter().map(|trial| trial.weight).fold(0.0, f64::max);
        // A power of two, kept in the range where its inverse is a normal number.
        let scale = if largest > 0.0 {
            (-largest.log2().floor()).clamp(-1000.0, 1000.0).exp2()
        } else {
            1.0
        };
        for trial in &mut open {
            trial.weight *= scale;
        }
        // The order makes products of characteristic functions small soon.
        let spread = |trial: &Trial| trial.weight * trial.weight * trial.rate * (1.0 - trial.rate);
        open.sort_by(|a, b| spread(b).total_cmp(&spread(a)).then(b.weight.total_cmp(&a.weight)));
        let total = accurate_sum(open.iter().map(|trial| trial.weight));
        let certainties = (trials.len() - open.len()) as f64 * certain * scale;
        let doubt = 0.5 * f64::EPSILON * ((open.len() + 1) as f64 * total + certainties);
        Some(Self { trials: open, reach: reach * scale, total, doubt })
    }

    /// The same trials with other weights and another value to reach.
    pub(super) fn with_weights(&self, weights: &[f64], reach: f64) -> Self {
        let trials: Vec<Trial> = self
            .trials
            .iter()
            .zip(weights)
            .map(|(trial, &weight)| Trial { weight, rate: trial.rate })
            .collect();
        let total = accurate_sum(weights.iter().copied());
        let doubt = 0.5 * f64::EPSILON * (trials.len() + 1) as f64 * total;
        Self { trials, reach, total, doubt }
    }

    pub(super) fn trials(&self) -> &[Trial] {
        &self.trials
    }

    pub(super) fn len(&self) -> usize {
        self.trials.len()
    }

    /// The value to reach, ties allowed for.
    pub(super) fn reach(&self) -> f64 {
        self.reach
    }

    /// A rounded sum of weights that is at least this reaches the value for certain.
    pub(super) fn certain_reach(&self) -> f64 {
        self.reach + self.doubt
    }

    pub(super) fn total(&self) -> f64 {
        self.total
    }

    /// Whether even all successes fall short.
    pub(super) fn is_out_of_reach(&self) -> bool {
        self.reach > self.total * (1.0 + 4.0 * f64::EPSILON)
    }

    /// The logarithm of the moment generating function, K(theta).
    pub(super) fn cumulant(&self, theta: f64) -> f64 {
        accurate_sum(self.trials.iter().map(|trial| {
            let (tilt, rate) = (theta * trial.weight, trial.rate);
            if tilt > 600.0 {
                // ln(1 - r + r e^t) without the overflow of e^t.
                tilt + (rate + (-tilt).exp()).ln()
            } else if tilt > 0.0 || rate < 0.5 {
                (rate * tilt.exp_m1()).ln_1p()
            } else {
                ((1.0 - rate) + rate * tilt.exp()).ln()
            }
        }))
    }

    /// The rates after tilting.
    pub(super) fn tilted_rates(&self, theta: f64) -> impl Iterator<Item = TiltedRate> {
        self.trials.iter().map(move |trial| TiltedRate::new(trial, theta))
    }

    /// Mean and variance after tilting.
    pub(super) fn tilted_moments(&self, theta: f64) -> (f64, f64) {
        let (mut mean, mut variance) = (0.0, 0.0);
        for (trial, rate) in self.trials.iter().zip(self.tilted_rates(theta)) {
            mean += trial.weight * rate.success;
            variance += trial.weight * trial.weight * rate.success * rate.failure;
        }
        (mean, variance)
    }

    /// A tilt whose mean is near the value to reach: any tilt above 0 gives valid bounds, this
    /// one gives tight ones. It costs at least half a nat, as that by one standard deviation of a
    /// normal law does, and stops where the expected number of failures falls below a half, or
    /// where the rounding of a sum, times the tilt, would show in the bounds: weights that are tiny
    /// beside the largest keep their own rates.
    pub(super) fn saddle(&self) -> f64 {
        let (mean, variance) = self.tilted_moments(0.0);
        let most = LARGEST_TILT / ((self.len() as f64 + 16.0) * self.total);
        let mut smallest = variance.sqrt().recip().min(most);
        while self.cumulant(smallest) - smallest * mean > 0.6 {
            smallest *= 0.5;
        }
        let enough = |theta: f64| {
            let failures: f64 = self.tilted_rates(theta).map(|rate| rate.failure).sum();
            self.tilted_moments(theta).0 >= self.reach || failures < 0.5
        };
        if enough(smallest) {
            return smallest;
        }
        let (mut low, mut high) = (smallest, 2.0 * smallest);
        while !enough(high) && high < most {
            low = high;
            high *= 2.0;
        }
        while high - low > 1e-3 * high {
            let middle = low.midpoint(high);
            if enough(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        high.min(most)
    }
}

/// A tilted rate and its complement, each with its own digits.
#[derive(Clone, Copy, Debug)]
pub(super) struct TiltedRate {
    pub(super) success: f64,
    pub(super) failure: f64,
}

impl TiltedRate {
    /// r e^t / (1 - r + r e^t) for t = theta times the weight.
    fn new(trial: &Trial, theta: f64) -> Self {
        let odds_against = (1.0 - trial.rate) / trial.rate * (-theta * trial.weight).exp();
        Self { success: 1.0 / (1.0 + odds_against), failure: odds_against / (1.0 + odds_against) }
    }
}

/// A sum whose rounding error does not grow with the number of terms (Neumaier 1974).
pub(super) fn accurate_sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0);
    for term in terms {
        let next = sum + term;
        lost += if sum.abs() >= term.abs() { (sum - next) + term } else { (term - next) + sum };
        sum = next;
    }
    sum + lost
}
