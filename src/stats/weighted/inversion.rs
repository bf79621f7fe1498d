//! Certified Fourier inversion of a tilted tail.
//!
//! With Y = (S - x) / h and the tilt theta, lambda = theta h,
//!
//! ```text
//! P(S >= x) = e^(K(theta) - theta x) E_theta[E(Y)],   E(y) = e^(-lambda y) at y >= 0, 0 below
//! ```
//!
//! and L <= E <= M of [`mod@super::extremal`] are integrated against the characteristic function
//! of Y. The integral over frequencies is a sum over N points per unit: by Poisson's formula that
//! is the mean of the function repeated with period N,
//!
//! ```text
//! (1 / N) sum_{|j| < N} M^(j / N) E_theta[e^(2 pi i j Y / N)] = E_theta[sum_k M(Y + k N)]
//! ```
//!
//! M is at least 0, so the repetition only adds to the upper bound. For the lower bound, L <= E
//! bounds what it can add: e^(-lambda (N - A)) where -A <= Y < 0, the factor 1 / (1 - e^(-lambda
//! N)) where 0 <= Y < N, and 1 elsewhere, where Chernoff's bound of the tilted law holds.

use super::chernoff::rounding;
use super::extremal::{gap_transform, majorant_size, majorant_transform};
use super::spectrum::{Budget, Spectrum};
use super::step::{Lattice, lattice};
use super::tilt::Sum;
use super::{TailBounds, TailMethod};
use crate::stats::LogProbability;

/// More points are not tried.
const MOST_POINTS: f64 = 4_194_304.0;

/// lambda of the first attempt: where the law is smooth, the ratio of the bounds is e^lambda.
const FIRST_LAMBDA: f64 = 0.008;

/// What the repetition may add, as an exponent, beside what a mean of the size theta x deviation
/// needs.
const MARGIN: f64 = 18.0;

/// ln of the two bounds.
struct Bounds {
    lower: f64,
    upper: f64,
}

/// A tilted sum with what its inversion needs.
pub(super) struct Tilted<'a> {
    sum: &'a Sum,
    theta: f64,
    /// K(theta) - theta x and a bound of its rounding error.
    ln_front: f64,
    ln_front_error: f64,
    /// The exponent of everything that may be left out.
    exponent: f64,
    /// Beyond x - left and x + right the tilted law holds at most e^-exponent each.
    left: f64,
    right: f64,
}

/// The tail of a sum whose weights share a step, or `None` when they do not or it costs too much.
pub(super) fn on_common_step(sum: &Sum, budget: &mut Budget) -> Option<TailBounds> {
    let Lattice { lower, upper } = lattice(sum)?;
    let found = on_lattice(&upper, budget)?;
    let below = if lower.reach() == upper.reach() {
        found.lower
    } else {
        on_lattice(&lower, budget)?.lower
    };
    let bounds = tail(below, found.upper);
    bounds.is_tight().then_some(bounds)
}

/// Bounds for any weights, or `None` when they cost too much.
pub(super) fn bounds(sum: &Sum, budget: &mut Budget) -> Option<TailBounds> {
    let tilted = Tilted::new(sum);
    let mut best: Option<TailBounds> = None;
    let mut lambda = FIRST_LAMBDA;
    while let Some(found) = tilted.between(lambda, budget) {
        let found = tail(found.lower, found.upper);
        best = Some(best.map_or(found, |best| TailBounds {
            lower: if found.lower > best.lower { found.lower } else { best.lower },
            upper: if found.upper < best.upper { found.upper } else { best.upper },
            ..best
        }));
        if best.is_some_and(|best| best.is_tight()) {
            break;
        }
        lambda /= 4.0;
    }
    best
}

fn tail(lower: f64, upper: f64) -> TailBounds {
    TailBounds {
        lower: LogProbability::from_ln(lower),
        upper: LogProbability::from_ln(upper),
        method: TailMethod::Lattice,
    }
}

/// Whole weights and a whole value to reach.
fn on_lattice(sum: &Sum, budget: &mut Budget) -> Option<Bounds> {
    let tilted = Tilted::new(sum);
    let inversion = tilted.invert(1.0, budget)?;
    // On whole numbers M is E.
    Some(tilted.certify(&inversion, inversion.majorant, inversion.majorant_error))
}

/// The means of the repeated M and of the repeated M - L, with bounds of their errors.
struct Inversion {
    lambda: f64,
    points: f64,
    /// The length h that is 1 to M.
    spacing: f64,
    majorant: f64,
    majorant_error: f64,
    gap: f64,
    gap_error: f64,
}

impl<'a> Tilted<'a> {
    pub(super) fn new(sum: &'a Sum) -> Self {
        let theta = sum.saddle();
        let cumulant = sum.cumulant(theta);
        let deviation = sum.tilted_moments(theta).1.sqrt();
        let exponent = MARGIN + (theta * deviation).ln_1p();
        // Chernoff's bound solved for the distance, at the best of some tilts.
        let distance = |side: f64| {
            [0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 20.0]
                .map(|steps| steps / deviation)
                .map(|step| {
                    let change = sum.cumulant(theta + side * step) - cumulant;
                    (exponent + 0.01 + change) / step - side * sum.reach()
                })
                .into_iter()
                .fold(f64::INFINITY, f64::min)
        };
        Self {
            sum,
            theta,
            ln_front: cumulant - theta * sum.reach(),
            ln_front_error: rounding(sum, cumulant, theta),
            exponent,
            left: distance(-1.0).clamp(0.0, sum.reach()),
            right: distance(1.0).clamp(0.0, (sum.total() - sum.reach()).max(0.0) * (1.0 + 1e-9)),
        }
    }

    pub(super) fn theta(&self) -> f64 {
        self.theta
    }

    /// ln of the tail between two bounds of the tilted mean of e^(-theta (S - x)) over S >= x.
    pub(super) fn of_means(&self, lower: f64, upper: f64) -> (f64, f64) {
        let ln_lower = if lower > 0.0 { lower.ln() } else { f64::NEG_INFINITY };
        (
            self.ln_front + ln_lower - self.ln_front_error,
            self.ln_front + upper.ln() + self.ln_front_error,
        )
    }

    fn between(&self, lambda: f64, budget: &mut Budget) -> Option<Bounds> {
        let inversion = self.invert(lambda / self.theta, budget)?;
        let minorant = inversion.majorant - inversion.gap;
        Some(self.certify(&inversion, minorant, inversion.majorant_error + inversion.gap_error))
    }

    fn invert(&self, spacing: f64, budget: &mut Budget) -> Option<Inversion> {
        let sum = self.sum;
        let lambda = self.theta * spacing;
        let reserve = self.right.max(self.exponent / self.theta);
        let points = ((self.left + reserve) / spacing).ceil().max(1.0) + 1.0;
        if points.is_nan() || points > MOST_POINTS {
            return None;
        }
        let period = points * spacing;
        let trials = sum.trials().iter().zip(sum.tilted_rates(self.theta));
        let spectrum = Spectrum {
            trials: trials.map(|(trial, rate)| (trial.weight / period, rate.success)).collect(),
            centre: sum.reach() / period,
        };
        let (mut majorant, mut gap, mut sizes) = (0.0, 0.0, 0.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
        let count = points as usize;
        let error = spectrum.visit(count, budget, |j, value| {
            let t = j as f64 / points;
            // The frequencies below 0 are the conjugates.
            let sides = if j == 0 { 1.0 } else { 2.0 };
            let Some((re, im)) = value else {
                sizes += sides * majorant_size(lambda, t);
                return;
            };
            let (m_re, m_im) = majorant_transform(lambda, t);
            majorant += sides * (m_re * re - m_im * im);
            gap += sides * gap_transform(t) * re;
            sizes += sides * m_re.hypot(m_im);
        })?;
        // The sum of the terms rounds once a term at most.
        let error = error + f64::EPSILON * (points + 64.0);
        Some(Inversion {
            lambda,
            points,
            spacing,
            majorant: majorant / points,
            majorant_error: error * sizes / points,
            gap: gap / points,
            gap_error: error,
        })
    }

    /// Bounds of the tail from the mean of the repeated M and from a mean that is at most that of
    /// the repeated E.
    fn certify(&self, inversion: &Inversion, below: f64, below_error: f64) -> Bounds {
        let upper = inversion.majorant + inversion.majorant_error;
        let guard = inversion.points - self.left / inversion.spacing;
        let added = (-inversion.lambda * guard).exp() + 2.0 * (-self.exponent).exp();
        let once = -(-inversion.lambda * inversion.points).exp_m1();
        let lower = once * (below - below_error) - added;
        let (lower, upper) = self.of_means(lower, upper);
        Bounds { lower, upper }
    }
}
