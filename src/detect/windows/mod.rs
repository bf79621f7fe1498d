//! Where in a text the mark is: the stretch of scored tokens that chance explains worst, and all
//! disjoint stretches that are significant.
//!
//! Windows run over the deduplicated sequence, the scored tokens in their order. The p of a window
//! is the exact tail of its count or sum. The search is a search only: what a region pays covers
//! every window of the sequence, so a stretch that the search misses can make a result weaker,
//! never wrong.
//!
//! This is no model of how marked and unmarked text follow each other: nothing is estimated, and
//! the ends of a region are those of the most surprising window, not a claim about who wrote the
//! token beside it.

mod correction;
mod passage;
mod region;
mod search;
mod tilt;

use crate::detect::{Evidence, Outcome, Test};
use crate::scheme::Null;
use crate::stats::LogProbability;

pub use correction::{Correction, WindowNull};
pub(super) use region::{Found, Searched};

/// The scores of a deduplicated sequence, with their running sums.
#[derive(Clone, Debug)]
pub struct Scores {
    null: Null,
    /// `sums[i]` is the sum of the first `i` scores.
    sums: Vec<f64>,
}

/// A stretch of a [`Scores`] sequence and its own exact p, uncorrected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Place of the first scored token, counted in scored tokens from 0.
    pub start: usize,
    /// One behind the place of the last.
    pub end: usize,
    /// The exact one-sided tail of this window alone.
    pub p: LogProbability,
}

impl Window {
    /// Number of scored tokens inside.
    #[must_use]
    pub fn scored(self) -> usize {
        self.end - self.start
    }
}

impl Scores {
    /// The scores of the tokens of `evidence` that count, in their order.
    #[must_use]
    pub fn new(null: Null, evidence: &Evidence) -> Self {
        Self::of(
            null,
            evidence.outcomes.iter().filter_map(|outcome| match outcome {
                Outcome::Scored(score) => Some(*score),
                Outcome::Skipped(_) => None,
            }),
        )
    }

    /// The sequence of these scores.
    pub fn of(null: Null, scores: impl IntoIterator<Item = f64>) -> Self {
        let mut sums = vec![0.0];
        let mut sum = 0.0;
        for score in scores {
            sum += score;
            sums.push(sum);
        }
        Self { null, sums }
    }

    /// Number of scored tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sums.len() - 1
    }

    /// Whether nothing was scored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The exact test of the scores from place `start` to before `end`.
    #[must_use]
    pub fn test(&self, start: usize, end: usize) -> Test {
        Test::of(self.null, (end - start) as u64, self.sums[end] - self.sums[start])
    }

    fn window(&self, start: usize, end: usize) -> Window {
        Window { start, end, p: self.test(start, end).p }
    }

    /// The window of at least `shortest` tokens with the smallest p that the search finds; `None`
    /// when no window lies above the mean of the null.
    ///
    /// Takes O(T log T) time and O(T) memory.
    #[must_use]
    pub fn best(&self, shortest: usize) -> Option<Window> {
        search::best(self, 0, self.len(), shortest)
    }

    /// All disjoint windows, in their order, for which `significant` gives something: `best`, then
    /// the best of what stands before and behind it, and so on.
    ///
    /// When `significant` holds with probability at most a for the smallest p of all windows of an
    /// unmarked sequence, then the chance that any region without a marked token is reported is at
    /// most a: its window belongs to those already paid for.
    pub fn regions<R>(
        &self,
        best: Window,
        shortest: usize,
        significant: impl Fn(Window) -> Option<R>,
    ) -> Vec<R> {
        let mut regions = Vec::new();
        let mut candidates = vec![(0, best, self.len())];
        while let Some((from, window, to)) = candidates.pop() {
            let Some(region) = significant(window) else { continue };
            regions.push((window.start, region));
            for (from, to) in [(from, window.start), (window.end, to)] {
                let best = search::best(self, from, to, shortest);
                candidates.extend(best.map(|window| (from, window, to)));
            }
        }
        regions.sort_by_key(|(start, _)| *start);
        regions.into_iter().map(|(_, region)| region).collect()
    }
}
