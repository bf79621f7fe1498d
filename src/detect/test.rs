//! One test of one sequence: the null, the tail and the effect size.

use crate::detect::Evidence;
use crate::scheme::Null;
use crate::stats::{LogProbability, ln_binomial_upper, ln_gamma_upper};
use crate::token::{Piece, TokenId};

/// A sequence that was looked at, and what it holds.
#[derive(Clone, Debug)]
pub struct Look {
    /// The transformations applied before encoding; empty for the text as given.
    pub normalization: Vec<&'static str>,
    /// The ids that were looked at.
    pub ids: Vec<TokenId>,
    /// Where each id stands in the original text; empty for bare ids.
    pub pieces: Vec<Piece>,
    /// The evidence found, one outcome per id.
    pub evidence: Evidence,
}

impl Look {
    /// The transformations joined by `+`; `none` for the text as given.
    #[must_use]
    pub fn normalization_name(&self) -> String {
        if self.normalization.is_empty() { "none".to_owned() } else { self.normalization.join("+") }
    }
}

/// The result of one test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// The statistic: green tokens, or the sum of the scores.
    pub statistic: f64,
    /// Effect size in standard deviations of the null; `None` when nothing was scored.
    pub z: Option<f64>,
    /// Exact one-sided tail.
    pub p: LogProbability,
    /// The smallest tail that this number of scored tokens can give, when there is one.
    pub best_attainable: Option<LogProbability>,
}

impl Test {
    /// Tests `evidence` against `null`.
    #[must_use]
    pub fn new(null: Null, evidence: &Evidence) -> Self {
        let statistic = match null {
            Null::Bernoulli(_) => evidence.green() as f64,
            Null::Exponential => evidence.sum,
        };
        Self::of(null, evidence.scored, statistic)
    }

    /// Tests `scored` tokens whose scores sum to `statistic`; a count is a whole number.
    #[must_use]
    pub fn of(null: Null, scored: u64, statistic: f64) -> Self {
        let n = scored as f64;
        let (mean, deviation, ln_p) = match null {
            Null::Bernoulli(rate) => (
                n * rate,
                (n * rate * (1.0 - rate)).sqrt(),
                ln_binomial_upper(scored, whole(statistic), rate),
            ),
            Null::Exponential => (n, n.sqrt(), ln_gamma_upper(n, statistic)),
        };
        Self {
            statistic,
            z: (scored > 0).then(|| (statistic - mean) / deviation),
            p: if scored == 0 { LogProbability::ONE } else { LogProbability::from_ln(ln_p) },
            best_attainable: Self::best_attainable(null, scored),
        }
    }

    /// The smallest tail that `scored` tokens can give: all of them green. `None` for a sum, which
    /// has no largest value.
    pub(crate) fn best_attainable(null: Null, scored: u64) -> Option<LogProbability> {
        match null {
            Null::Bernoulli(rate) => Some(LogProbability::from_ln(scored as f64 * rate.ln())),
            Null::Exponential => None,
        }
    }

    /// The status of a missing z.
    #[must_use]
    pub fn z_status(&self) -> Option<&'static str> {
        self.z.is_none().then_some("nothing_scored")
    }

    /// The statistic of a scheme that counts.
    #[must_use]
    pub fn green(&self) -> u64 {
        whole(self.statistic)
    }
}

/// A sum of zeros and ones, which is exact far beyond any text.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
fn whole(sum: f64) -> u64 {
    sum as u64
}
