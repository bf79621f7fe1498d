//! What the best window pays: a bound of the chance that any window of an unmarked sequence has a
//! p this small.
//!
//! Two bounds hold whatever the search does, and the smaller one is taken:
//!
//! - **Union.** p times the number of windows.
//! - **First passage.** A window with p at most t is a walk from its start that reaches the critical
//!   value of t for its length. The chance that a walk from one start ever does is computed by
//!   dynamic programming ([`super::passage`]); overlapping windows of one start are so counted
//!   once, and the starts are added up. It is some ten to fifty times smaller.

use serde::Serialize;

use super::passage;
use crate::scheme::Null;
use crate::stats::LogProbability;

/// Longest sequence of counts for which walks are followed: the time grows as T^1.5, for every
/// region.
const COUNTS_LONGEST: usize = 20_000;

/// Longest sequence of sums, where each step of a walk is a convolution of its own.
const SUMS_LONGEST: usize = 5_000;

/// Below this the masses of the walks would leave the range of a double; the union bound of so
/// small a p leaves nothing open.
const SMALLEST_LN_P: f64 = -600.0;

/// Which bound a corrected p comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Correction {
    /// The number of windows times p.
    UnionBound,
    /// The chance that a walk from any start reaches the boundary of p.
    FirstPassage,
}

/// All windows of at least `shortest` tokens of an unmarked sequence of `scored` tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowNull {
    null: Null,
    scored: usize,
    shortest: usize,
}

impl WindowNull {
    /// The windows of at least `shortest` (and at least one) of `scored` tokens.
    #[must_use]
    pub fn new(null: Null, scored: usize, shortest: usize) -> Self {
        Self { null, scored, shortest: shortest.max(1) }
    }

    /// Number of windows.
    #[must_use]
    pub fn count(self) -> u64 {
        let starts = (self.scored + 1).saturating_sub(self.shortest) as u64;
        starts * (starts + 1) / 2
    }

    /// An upper bound of the chance that the smallest p of all windows is at most `p`, and where it
    /// comes from.
    #[must_use]
    pub fn corrected(self, p: LogProbability) -> (LogProbability, Correction) {
        let union = p.corrected(self.count());
        match self.first_passage(p) {
            Some(walks) if walks < union => (walks, Correction::FirstPassage),
            _ => (union, Correction::UnionBound),
        }
    }

    fn first_passage(self, p: LogProbability) -> Option<LogProbability> {
        if p >= LogProbability::ONE || p.ln() < SMALLEST_LN_P || self.scored < self.shortest {
            return None;
        }
        let chance = match self.null {
            Null::Bernoulli(rate) if self.scored <= COUNTS_LONGEST => {
                passage::counts(rate, self.scored, self.shortest, p)
            }
            Null::Exponential if self.scored <= SUMS_LONGEST => {
                passage::sums(self.scored, self.shortest, p)
            }
            _ => return None,
        };
        // A tail that no window can have is passed with chance 0; no p is made smaller all the same.
        Some(LogProbability::from_ln(chance.ln().max(p.ln())))
    }
}
