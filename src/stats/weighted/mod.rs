//! Tails of a weighted sum of independent trials, each with its own rate, between certified
//! bounds.
//!
//! The law of such a sum has up to 2^T atoms, so beyond small or commensurable cases nobody can
//! add them up. Here every answer is a pair of bounds that hold for certain, rounding included: a
//! verdict rests on the upper one, and the lower one shows how little it gives away. No normal
//! approximation is used anywhere.
//!
//! The ways, the first that applies:
//!
//! 1. equal weights and rates: the binomial tail;
//! 2. weights that are multiples of one step: exact Fourier inversion on that lattice;
//! 3. few outcomes that matter: their exact sum;
//! 4. any weights: Fourier inversion of the extremal majorant and minorant of an exponentially
//!    tilted step (`inversion`), after the gaps between clusters of nearly equal weights are
//!    narrowed (`clusters`);
//! 5. too much work for these: Chernoff's bound.

mod atoms;
mod chernoff;
mod clusters;
mod extremal;
mod inversion;
mod spectrum;
mod step;
mod tilt;

use super::{LogProbability, ln_binomial_upper};
use spectrum::Budget;
use tilt::Sum;

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
    /// The probabilities themselves were added: the bounds differ by rounding at most.
    Exact,
    /// Fourier inversion on a lattice, with a certified error.
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

impl TailBounds {
    const CERTAIN: Self =
        Self { lower: LogProbability::ONE, upper: LogProbability::ONE, method: TailMethod::Exact };

    fn exact(lower: f64, upper: f64) -> Self {
        Self {
            lower: LogProbability::from_ln(lower),
            upper: LogProbability::from_ln(upper),
            method: TailMethod::Exact,
        }
    }

    /// What both say together, and the method of the smaller upper bound.
    fn tightened(self, other: Self) -> Self {
        let lower = if other.lower > self.lower { other.lower } else { self.lower };
        let best = if other.upper <= self.upper { other } else { self };
        Self { lower, ..best }
    }

    /// Whether the bounds are within the stated ratio of each other.
    fn is_tight(&self) -> bool {
        self.upper.ln() - self.lower.ln() <= TARGET_RATIO.ln()
    }
}

/// The ratio of the bounds that is worked for; the promise is 1.02 up to 10^4 trials and down to
/// p = 1e-30.
const TARGET_RATIO: f64 = 1.015;

/// Bounds of P(sum >= x) for the sum of independent `trials`.
///
/// **Ties.** An observed statistic is a floating-point sum of some of these weights in some
/// order, and must not lose its own atom to rounding: sums that fall short of `x` by at most
/// T * 2.2e-16 * (sum of all weights), which bounds that rounding for any order, count as
/// reaching it. The lower bound is of the probability so defined. The upper one holds for the sum in
/// real numbers and for its rounding in any order, which is half that tolerance at most.
///
/// A lower bound of ln 0 beside a larger upper one says that nothing is known from below. Sums that
/// differ from `x` by no more than the tolerance can make a ratio larger than the one below.
///
/// Upper / lower is at most 1.02 for T <= 10^4 and p >= 1e-30 with the kinds of weights that
/// `tests/stats/weighted.rs` tries. Thousands of weights that differ by less than a thousandth
/// of their size, but do differ, can cost more than the work allowed (a second) and leave a larger
/// ratio; the bounds hold all the same, as they do for any T and p. Where a sum can never reach
/// `x`, both are ln 0.
///
/// Values outside their ranges never make a text look marked: a weight that is not above 0 is
/// left out, an infinite weight or a rate that is NaN is a certain success, other rates are
/// clamped to 0..=1, and an `x` that is NaN is always reached. Rates below 2.3e-308 (subnormal
/// numbers) are taken as that from above and as 0 from below.
#[must_use]
pub fn weighted_upper(trials: &[Trial], x: f64) -> TailBounds {
    if let Some(bounds) = between_normal_rates(trials, x) {
        return bounds;
    }
    let Some(sum) = Sum::new(trials, x) else {
        return TailBounds::CERTAIN;
    };
    if sum.is_out_of_reach() {
        return TailBounds::exact(f64::NEG_INFINITY, f64::NEG_INFINITY);
    }
    if let Some(bounds) = identical(&sum) {
        return bounds;
    }
    if let Some(bounds) = chernoff::almost_certain(&sum) {
        return bounds;
    }
    let mut budget = Budget::default();
    if let Some(bounds) = inversion::on_common_step(&sum, &mut budget) {
        return bounds;
    }
    let exact = atoms::bounds(&sum);
    if let Some(bounds) = exact.filter(TailBounds::is_tight) {
        return bounds;
    }
    let narrowed = clusters::narrowed(&sum);
    // A common step that was too fine has spent its budget and is not to cost the other way.
    let inverted = inversion::bounds(narrowed.as_ref().unwrap_or(&sum), &mut Budget::default());
    [exact, inverted].into_iter().flatten().fold(chernoff::bounds(&sum), TailBounds::tightened)
}

/// Rates too small to have an inverse (subnormal numbers): from above as the smallest normal one,
/// from below as 0. `None` when there are none.
fn between_normal_rates(trials: &[Trial], x: f64) -> Option<TailBounds> {
    let subnormal = |rate: f64| rate > 0.0 && rate < f64::MIN_POSITIVE;
    if !trials.iter().any(|trial| subnormal(trial.rate)) {
        return None;
    }
    let with = |other: f64| -> Vec<Trial> {
        let rate = |rate: f64| if subnormal(rate) { other } else { rate };
        trials.iter().map(|trial| Trial { rate: rate(trial.rate), ..*trial }).collect()
    };
    let upper = weighted_upper(&with(f64::MIN_POSITIVE), x);
    Some(TailBounds { lower: weighted_upper(&with(0.0), x).lower, ..upper })
}

/// The smallest threshold x whose upper bound is at most `alpha`, from above, to within 1e-9 of
/// the sum of all weights; `None` when even the largest sum is not that rare.
///
/// A sum that reaches the threshold has p <= alpha.
#[must_use]
pub fn weighted_threshold(trials: &[Trial], alpha: LogProbability) -> Option<f64> {
    let total: f64 = trials.iter().map(|trial| trial.weight).filter(|weight| *weight > 0.0).sum();
    let rare = |x: f64| weighted_upper(trials, x).upper <= alpha;
    if alpha == LogProbability::ONE {
        return Some(0.0);
    }
    if !rare(total) {
        return None;
    }
    let (mut low, mut high) = (0.0, total);
    while high - low > 1e-9 * total {
        let middle = f64::midpoint(low, high);
        if rare(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// The binomial tail, when all trials are alike.
fn identical(sum: &Sum) -> Option<TailBounds> {
    let first = *sum.trials().first()?;
    if sum.trials().iter().any(|trial| *trial != first) {
        return None;
    }
    // At least 0: an `x` at or below 0 is certain.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to T")]
    let successes = (sum.reach() / first.weight).ceil().max(0.0) as u64;
    let ln = ln_binomial_upper(sum.len() as u64, successes, first.rate);
    Some(TailBounds::exact(ln, ln))
}
