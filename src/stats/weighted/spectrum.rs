//! The characteristic function of a tilted sum at evenly spaced frequencies.

use std::f64::consts::TAU;

/// Frequencies that are computed together.
const LANES: usize = 16;

/// The work of a block beside its products, in products.
const OVERHEAD: u64 = 16;

/// Products below this are taken as 0.
pub(super) const NEGLIGIBLE: f64 = 1e-14;

/// A tilted sum, in turns: what a weight and the value to reach are of the period.
#[derive(Clone, Debug)]
pub(super) struct Spectrum {
    /// Weight over the period, and the tilted rate.
    pub(super) trials: Vec<(f64, f64)>,
    /// Value to reach over the period.
    pub(super) centre: f64,
}

/// How many products of one trial and [`LANES`] frequencies may still be taken: a bound on the
/// work of one answer that does not depend on the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget(u64);

impl Default for Budget {
    fn default() -> Self {
        Self(8_000_000)
    }
}

impl Spectrum {
    /// Calls `visit` with each j below `count` and E[e^(2 pi i j (S - x) / period)], or `None`
    /// for a value that is taken as 0, and returns a bound of the error of each value; `None` when
    /// the budget is used up.
    ///
    /// Every factor has at most size 1, so a product that has become negligible stays so: with
    /// weights that share no step, most frequencies need few factors.
    pub(super) fn visit(
        &self,
        count: usize,
        budget: &mut Budget,
        mut visit: impl FnMut(usize, Option<(f64, f64)>),
    ) -> Option<f64> {
        let steps: Vec<(f64, f64)> =
            self.trials.iter().map(|&(turns, _)| rotation(turns)).collect();
        for start in (0..count).step_by(LANES) {
            let (re, im) = self.block(start, &steps, budget)?;
            for lane in 0..LANES.min(count - start) {
                let j = start + lane;
                if (re[lane], im[lane]) == (0.0, 0.0) {
                    visit(j, None);
                    continue;
                }
                let (cosine, sine) = rotation(-(j as f64) * self.centre);
                let value =
                    (re[lane] * cosine - im[lane] * sine, re[lane] * sine + im[lane] * cosine);
                visit(j, Some(value));
            }
        }
        Some(self.error(count) + NEGLIGIBLE)
    }

    fn block(
        &self,
        start: usize,
        steps: &[(f64, f64)],
        budget: &mut Budget,
    ) -> Option<([f64; LANES], [f64; LANES])> {
        let (mut re, mut im) = ([1.0; LANES], [0.0; LANES]);
        budget.0 = budget.0.checked_sub(OVERHEAD)?;
        for (trials, steps) in self.trials.chunks(8).zip(steps.chunks(8)) {
            budget.0 = budget.0.checked_sub(trials.len() as u64)?;
            for (&(turns, rate), &step) in trials.iter().zip(steps) {
                multiply(&mut re, &mut im, rotation(start as f64 * turns), step, rate);
            }
            let mut alive = false;
            for lane in 0..LANES {
                if re[lane] * re[lane] + im[lane] * im[lane] < NEGLIGIBLE * NEGLIGIBLE {
                    (re[lane], im[lane]) = (0.0, 0.0);
                } else {
                    alive = true;
                }
            }
            if !alive {
                break;
            }
        }
        Some((re, im))
    }

    /// A bound of the rounding error of one value. Factors have at most size 1, so their errors
    /// add: each has a few units of rounding, the error of its angle (which grows with the number
    /// of turns) times its rate, and that of at most [`LANES`] rotations in a row.
    fn error(&self, count: usize) -> f64 {
        let (mut turned, mut rates) = (self.centre.abs(), 0.0);
        for &(turns, rate) in &self.trials {
            turned += turns * rate;
            rates += rate;
        }
        let angles = 2.0 * TAU * count as f64 * turned;
        let rotations = 8.0 * LANES as f64 * rates;
        f64::EPSILON * (angles + rotations + 16.0 * self.trials.len() as f64 + 16.0)
    }
}

/// e^(2 pi i turns), the whole turns taken off before the angle is rounded.
fn rotation(turns: f64) -> (f64, f64) {
    let (sine, cosine) = (TAU * (turns - turns.round())).sin_cos();
    (cosine, sine)
}

/// Multiplies lane k by 1 - rate + rate * first * step^k.
#[inline]
fn multiply(
    re: &mut [f64; LANES],
    im: &mut [f64; LANES],
    first: (f64, f64),
    step: (f64, f64),
    rate: f64,
) {
    let (mut z_re, mut z_im) = ([0.0; LANES], [0.0; LANES]);
    (z_re[0], z_im[0]) = first;
    let (mut s_re, mut s_im) = step;
    let mut filled = 1;
    while filled < LANES {
        for k in 0..filled {
            z_re[filled + k] = z_re[k] * s_re - z_im[k] * s_im;
            z_im[filled + k] = z_re[k] * s_im + z_im[k] * s_re;
        }
        (s_re, s_im) = (s_re * s_re - s_im * s_im, 2.0 * s_re * s_im);
        filled *= 2;
    }
    for k in 0..LANES {
        let (f_re, f_im) = (1.0 - rate + rate * z_re[k], rate * z_im[k]);
        (re[k], im[k]) = (re[k] * f_re - im[k] * f_im, re[k] * f_im + im[k] * f_re);
    }
}
