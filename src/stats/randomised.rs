//! Randomised tests: an exact level for a statistic that takes few values.
//!
//! Rejecting at p <= alpha has, for a count, a level below alpha, and how far below depends on the
//! number of trials. Two tests can be compared at one false positive rate only when the value at
//! the edge is rejected in the right share of cases (E. L. Lehmann and J. P. Romano, "Testing
//! Statistical Hypotheses", 2005, section 3.2). For measurements alone: no verdict rests on a draw.

use crate::stats::{LogProbability, ln_binomial_upper};

/// What the null says about an observed value: the chance of at least as much, and of more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tails {
    at_least: LogProbability,
    above: LogProbability,
}

impl Tails {
    /// Of `k` successes in `n` trials at rate `p`.
    #[must_use]
    pub fn binomial(n: u64, k: u64, p: f64) -> Self {
        Self {
            at_least: LogProbability::from_ln(ln_binomial_upper(n, k, p)),
            above: LogProbability::from_ln(ln_binomial_upper(n, k.saturating_add(1), p)),
        }
    }

    /// Of a value that has no chance of its own, from its upper tail.
    #[must_use]
    pub fn continuous(p: LogProbability) -> Self {
        Self { at_least: p, above: p }
    }

    /// From both: the chance of at least the value, and of more.
    #[must_use]
    pub fn between(at_least: LogProbability, above: LogProbability) -> Self {
        Self { at_least, above }
    }

    /// Of the only value possible, such as the sum of no scores: it is certain and holds no
    /// evidence.
    #[must_use]
    pub fn certain() -> Self {
        Self { at_least: LogProbability::ONE, above: LogProbability::from_ln(f64::NEG_INFINITY) }
    }

    /// P(X >= x), the plain p.
    #[must_use]
    pub fn at_least(self) -> LogProbability {
        self.at_least
    }

    /// P(X > x) + u P(X = x): uniform on (0, 1) under the null when `u` is. `u` is taken into
    /// [0, 1].
    #[must_use]
    pub fn randomised(self, u: f64) -> LogProbability {
        let above = (self.above.ln() - self.at_least.ln()).exp();
        let share = above + (1.0 - above) * u.clamp(0.0, 1.0);
        LogProbability::from_ln(self.at_least.ln() + share.ln())
    }

    /// The chance that the randomised test of level `alpha` rejects: 1 when P(X >= x) <= alpha, 0
    /// when P(X > x) >= alpha, and the share of the atom that alpha leaves room for in between.
    #[must_use]
    pub fn rejection(self, alpha: LogProbability) -> f64 {
        if self.at_least <= alpha {
            return 1.0;
        }
        if self.above >= alpha {
            return 0.0;
        }
        let relative = |p: LogProbability| p.ln() - self.at_least.ln();
        let above = relative(self.above).exp();
        (relative(alpha).exp() - above) / (1.0 - above)
    }
}
