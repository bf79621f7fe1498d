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
        let scored = evidence.scored as f64;
        let (mean, deviation, ln_p, best) = match null {
            Null::Bernoulli(rate) => (
                scored * rate,
                (scored * rate * (1.0 - rate)).sqrt(),
                ln_binomial_upper(evidence.scored, evidence.green(), rate),
                Some(LogProbability::from_ln(scored * rate.ln())),
            ),
            Null::Exponential => {
                (scored, scored.sqrt(), ln_gamma_upper(scored, evidence.sum), None)
            }
        };
        Self {
            statistic: evidence.sum,
            z: (evidence.scored > 0).then(|| (evidence.sum - mean) / deviation),
            p: if evidence.scored == 0 {
                LogProbability::ONE
            } else {
                LogProbability::from_ln(ln_p)
            },
            best_attainable: best,
        }
    }
}
