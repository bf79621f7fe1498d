//! A common step: weights that are whole multiples of one number, such as 0.1.

use super::tilt::{Sum, accurate_sum};

/// A sum whose weights are whole numbers of a step, up to rounding.
#[derive(Clone, Debug)]
pub(super) struct Lattice {
    /// The sum in steps, with the value that certainly holds every outcome that reaches.
    pub(super) upper: Sum,
    /// The same with the value that only outcomes reach that certainly do; the same value as that
    /// of `upper` unless an outcome stands nearer to the value than rounding can tell.
    pub(super) lower: Sum,
}

/// Remainders below this are rounding (weights are scaled to at most 2).
const ROUNDING: f64 = 1e-11;

/// Smaller steps would need more cells than an inversion can afford.
const SMALLEST: f64 = 1e-6;

/// The lattice of the weights of `sum`, if there is one.
pub(super) fn lattice(sum: &Sum) -> Option<Lattice> {
    let step = common_step(sum)?;
    let multiples: Vec<f64> =
        sum.trials().iter().map(|trial| (trial.weight / step).round()).collect();
    let off = accurate_sum(
        sum.trials().iter().zip(&multiples).map(|(trial, many)| (trial.weight - many * step).abs()),
    ) * (1.0 + 1e-6)
        + 2.0 * f64::EPSILON * sum.total();
    if off > 0.1 * step {
        return None;
    }
    let cell = |value: f64, side: f64| (value / step * (1.0 + side * 4.0 * f64::EPSILON)).ceil();
    Some(Lattice {
        upper: sum.with_weights(&multiples, cell(sum.reach() - off, -1.0)),
        lower: sum.with_weights(&multiples, cell(sum.reach() + off, 1.0)),
    })
}

/// Euclid's algorithm with nearest remainders over all weights.
fn common_step(sum: &Sum) -> Option<f64> {
    let mut weights = sum.trials().iter().map(|trial| trial.weight);
    let mut step = weights.next()?;
    let mut largest = step;
    for weight in weights {
        let remainder = |a: f64, b: f64| (a - (a / b).round() * b).abs();
        let mut rest = remainder(weight, step);
        while rest > ROUNDING {
            if rest < SMALLEST {
                return None;
            }
            (step, rest) = (rest, remainder(step, rest));
        }
        // The largest multiple knows the step best.
        largest = largest.max(weight);
        step = largest / (largest / step).round();
    }
    (step >= SMALLEST).then_some(step)
}
