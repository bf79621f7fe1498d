//! A weighted count of green tokens against its exact null.
//!
//! Without the key the tokens are green independently with chance gamma, whatever their weights
//! are; the p is an upper bound on the tail of that sum, at most a few percent above it.

use crate::detect::entropy::{GreenListBias, Rule, TokenUncertainty};
use crate::stats::{LogProbability, Trial, ln_binomial_upper, weighted_upper};

/// The test of one rule.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedTest {
    /// The rule.
    pub rule: Rule,
    /// Tokens with a weight above 0.
    pub scored: u64,
    /// Tokens of weight 0.
    pub low_entropy: u64,
    /// Tokens whose uncertainty is not known; they have weight 0.
    pub unaligned: u64,
    /// Green tokens among the scored.
    pub green: u64,
    /// Sum of the weights of the green tokens.
    pub statistic: f64,
    /// Sum of all weights.
    pub total: f64,
    /// Sum of the squares of the weights.
    pub squares: f64,
    /// Effect size in standard deviations of the null; `None` without weights.
    pub z: Option<f64>,
    /// Upper bound of the one-sided tail.
    pub p: LogProbability,
    trials: Vec<Trial>,
}

impl WeightedTest {
    /// Tests the scored tokens of a text: whether each is green, and its uncertainty.
    ///
    /// `None` when the rule's numbers are known for no token.
    #[must_use]
    pub fn new(
        rule: Rule,
        bias: GreenListBias,
        green: &[bool],
        uncertainties: &[Option<TokenUncertainty>],
    ) -> Option<Self> {
        let weights = rule.weights(bias, uncertainties);
        if weights.iter().all(Option::is_none) {
            return None;
        }
        let (mut statistic, mut total, mut squares) = (0.0, 0.0, 0.0);
        let (mut low_entropy, mut unaligned, mut greens) = (0, 0, 0);
        let mut trials = Vec::new();
        for (weight, &green) in weights.into_iter().zip(green) {
            match weight {
                None => unaligned += 1,
                Some(weight) if weight > 0.0 => {
                    trials.push(Trial { weight, rate: bias.gamma });
                    total += weight;
                    squares += weight * weight;
                    statistic += if green { weight } else { 0.0 };
                    greens += u64::from(green);
                }
                Some(_) => low_entropy += 1,
            }
        }
        let deviation = (squares * bias.gamma * (1.0 - bias.gamma)).sqrt();
        let z = (!trials.is_empty()).then(|| (statistic - bias.gamma * total) / deviation);
        let p = tail(rule, &trials, bias, statistic, Bound::Included);
        Some(Self {
            rule,
            scored: trials.len() as u64,
            low_entropy,
            unaligned,
            green: greens,
            statistic,
            total,
            squares,
            z,
            p,
            trials,
        })
    }

    /// The tail without the observed value itself: P(sum > statistic). With
    /// [`WeightedTest::p`] it makes a randomised test of exactly any size.
    #[must_use]
    pub fn p_above(&self, bias: GreenListBias) -> LogProbability {
        tail(self.rule, &self.trials, bias, self.statistic, Bound::Excluded)
    }

    /// The smallest p that these weights can give: every token green.
    #[must_use]
    pub fn best_attainable(&self, bias: GreenListBias) -> LogProbability {
        LogProbability::from_ln(self.trials.len() as f64 * bias.gamma.ln())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Included,
    Excluded,
}

fn tail(
    rule: Rule,
    trials: &[Trial],
    bias: GreenListBias,
    statistic: f64,
    bound: Bound,
) -> LogProbability {
    if trials.is_empty() {
        // An empty sum reaches 0 for sure and never exceeds it; no evidence accuses nobody.
        return LogProbability::ONE;
    }
    if rule == Rule::Sweet {
        // Every weight is 1: a count, whose tail is exact.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let count = statistic as u64 + u64::from(bound == Bound::Excluded);
        return LogProbability::from_ln(ln_binomial_upper(trials.len() as u64, count, bias.gamma));
    }
    let slack = rounding_slack(trials);
    let x = match bound {
        Bound::Included => statistic - slack,
        Bound::Excluded => statistic + slack,
    };
    weighted_upper(trials, x).upper
}

/// How far apart two sums of these weights may lie that are equal but for rounding: they are added
/// in different orders, and an observed sum must not look larger than it is.
pub(super) fn rounding_slack(trials: &[Trial]) -> f64 {
    1e-10 * trials.iter().map(|trial| trial.weight).sum::<f64>()
}
