//! Which alphas a result reaches, and how often chance reaches them.

use crate::detect::{Alpha, Test};
use crate::scheme::Null;
use crate::stats::{LogProbability, critical_count};

/// Equal parts of (0, 1) that a continuous p is counted in.
const PARTS: u32 = 10_000;

/// The critical values of every number of scored tokens.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    null: Null,
    alphas: Vec<Alpha>,
    /// For a count: by scored tokens and alpha the smallest count whose p is at most alpha.
    critical: Vec<Vec<u32>>,
}

impl Levels {
    pub(super) fn new(null: Null, alphas: &[Alpha], longest: u32) -> Self {
        let critical = match null {
            Null::Bernoulli(rate) => (0..=longest)
                .map(|scored| {
                    let critical =
                        |alpha: &Alpha| critical_count(scored.into(), rate, alpha.log().ln());
                    // At most one more than `scored`, and a plan's lengths are far below 2^32.
                    let count = |alpha| u32::try_from(critical(alpha)).unwrap_or(u32::MAX);
                    alphas.iter().map(count).collect()
                })
                .collect(),
            Null::Exponential => Vec::new(),
        };
        Self { null, alphas: alphas.to_vec(), critical }
    }

    /// The p that a detection gives.
    pub(super) fn p(&self, scored: u32, statistic: f64) -> LogProbability {
        Test::of(self.null, u64::from(scored), statistic).p
    }

    /// How many of the alphas, from the largest, are reached.
    pub(super) fn reached(&self, scored: u32, statistic: f64) -> u8 {
        let reached = match self.null {
            Null::Bernoulli(_) => self.critical[scored as usize]
                .partition_point(|critical| statistic >= f64::from(*critical)),
            Null::Exponential => {
                let p = self.p(scored, statistic);
                self.alphas.partition_point(|alpha| p <= alpha.log())
            }
        };
        // A plan has at most 16 alphas.
        u8::try_from(reached).unwrap_or(u8::MAX)
    }

    /// The chance that p is at most the alpha of place `level`, exactly.
    pub(super) fn attainable(&self, scored: u32, level: usize) -> f64 {
        match self.null {
            Null::Bernoulli(_) => {
                let critical = self.critical[scored as usize][level];
                if critical > scored { 0.0 } else { self.p(scored, f64::from(critical)).ln().exp() }
            }
            Null::Exponential if scored == 0 => 0.0,
            Null::Exponential => self.alphas[level].value(),
        }
    }

    /// What of a result is kept: for a count the scored and the green tokens; for a sum the
    /// ten-thousandth of p and the alphas reached. `None` when nothing can be told.
    pub(super) fn cell(&self, scored: u32, statistic: f64) -> Option<(u32, u32)> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small counts")]
        match self.null {
            Null::Bernoulli(_) => Some((scored, statistic as u32)),
            Null::Exponential if scored == 0 => None,
            Null::Exponential => {
                let p = self.p(scored, statistic).ln().exp();
                let part = ((p * f64::from(PARTS)) as u32).min(PARTS - 1);
                Some((part, u32::from(self.reached(scored, statistic))))
            }
        }
    }

    /// Whether a result of at most `longest` scored tokens can be in `cell`.
    pub(super) fn is_cell(&self, (first, second): (u32, u32), longest: u32) -> bool {
        match self.null {
            Null::Bernoulli(_) => first <= longest && second <= first,
            Null::Exponential => first < PARTS && second as usize <= self.alphas.len(),
        }
    }

    /// The alphas reached by a result in `cell`.
    pub(super) fn reached_in(&self, cell: (u32, u32)) -> u8 {
        match self.null {
            Null::Bernoulli(_) => self.reached(cell.0, f64::from(cell.1)),
            Null::Exponential => u8::try_from(cell.1).unwrap_or(u8::MAX),
        }
    }

    /// The ends of the interval in which the p of a result in `cell` is uniform: a count has the
    /// tails at and beyond it (the randomised p), a sum its part.
    pub(super) fn spread(&self, (first, second): (u32, u32)) -> (f64, f64) {
        match self.null {
            Null::Bernoulli(_) => {
                let tail = |count: u32| {
                    if count > first { 0.0 } else { self.p(first, f64::from(count)).ln().exp() }
                };
                (tail(second + 1), tail(second))
            }
            Null::Exponential => {
                let part = |part: u32| f64::from(part) / f64::from(PARTS);
                (part(first), part(first + 1))
            }
        }
    }
}
