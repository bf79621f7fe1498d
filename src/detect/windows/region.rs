//! From windows of scored tokens to regions of a text, with offsets and what they pay.

use super::{Correction, Scores, Window, WindowNull};
use crate::detect::{Alpha, Look, Outcome, Region, Skip, Test};
use crate::scheme::Null;
use crate::stats::LogProbability;

/// A look whose windows were searched.
#[derive(Clone, Debug)]
pub(in crate::detect) struct Searched<'a> {
    look: &'a Look,
    null: Null,
    scores: Scores,
    windows: WindowNull,
    /// The token index of each scored token.
    places: Vec<usize>,
    shortest: usize,
    /// Further tests that every window pays for: profiles times looks times families.
    sharing: u64,
    best: Option<Window>,
}

/// A window, its test and what it pays.
#[derive(Clone, Copy, Debug)]
pub(in crate::detect) struct Found {
    window: Window,
    pub(in crate::detect) test: Test,
    /// The p after paying for all windows of all looks, the other families and profiles.
    pub(in crate::detect) corrected: LogProbability,
    pub(in crate::detect) hypotheses: u64,
    /// Tokens that would be scored if repeats counted.
    pub(in crate::detect) raw: u64,
    correction: Correction,
}

impl Found {
    pub(in crate::detect) fn scored(self) -> u64 {
        self.window.scored() as u64
    }
}

impl<'a> Searched<'a> {
    /// Searches the windows of `look` that have at least `shortest` scored tokens.
    pub(in crate::detect) fn new(null: Null, look: &'a Look, shortest: u64, sharing: u64) -> Self {
        let shortest = usize::try_from(shortest).unwrap_or(usize::MAX).max(1);
        let scores = Scores::new(null, &look.evidence);
        let places = look
            .evidence
            .outcomes
            .iter()
            .enumerate()
            .filter(|(_, outcome)| matches!(outcome, Outcome::Scored(_)))
            .map(|(place, _)| place)
            .collect();
        let windows = WindowNull::new(null, scores.len(), shortest);
        let best = scores.best(shortest);
        Self { look, null, scores, windows, places, shortest, sharing, best }
    }

    pub(in crate::detect) fn look(&self) -> &'a Look {
        self.look
    }

    /// The most surprising window; `None` when no window holds more than chance expects.
    pub(in crate::detect) fn best(&self) -> Option<Found> {
        self.best.map(|window| self.found(window))
    }

    /// All disjoint windows whose corrected p is at most alpha, in the order of the text.
    pub(in crate::detect) fn spans(&self, alpha: Alpha) -> Vec<Region> {
        let significant = |window: Window| {
            // No window pays less than its own p, and that is quick to know.
            if window.p.corrected(self.sharing) > alpha.log() {
                return None;
            }
            let found = self.found(window);
            (found.corrected <= alpha.log()).then(|| self.region(found))
        };
        match self.best {
            Some(best) => self.scores.regions(best, self.shortest, significant),
            None => Vec::new(),
        }
    }

    fn found(&self, window: Window) -> Found {
        let (corrected, correction) = self.windows.corrected(window.p);
        let tokens = self.places[window.start]..=self.places[window.end - 1];
        let counts = |outcome: &&Outcome| {
            matches!(outcome, Outcome::Scored(_) | Outcome::Skipped(Skip::Repeated))
        };
        Found {
            window,
            test: self.scores.test(window.start, window.end),
            corrected: corrected.corrected(self.sharing),
            hypotheses: self.windows.count().saturating_mul(self.sharing),
            raw: self.look.evidence.outcomes[tokens].iter().filter(counts).count() as u64,
            correction,
        }
    }

    /// The region of a window, from its first scored token to its last.
    pub(in crate::detect) fn region(&self, found: Found) -> Region {
        let (first, last) = (self.places[found.window.start], self.places[found.window.end - 1]);
        let ends = self.look.pieces.get(first).zip(self.look.pieces.get(last));
        Region {
            normalization: self.look.normalization_name(),
            tokens: [first, last + 1],
            bytes: ends.map(|(first, last)| [first.bytes.start, last.bytes.end]),
            chars: ends.map(|(first, last)| [first.chars.start, last.chars.end]),
            scored: found.scored(),
            green: self.null.counts().then_some(found.test.green()),
            // A window holds a token, so it has a z.
            z: found.test.z.unwrap_or(0.0),
            p_value: found.test.p.p_value(),
            p_status: found.test.p.p_value().status(),
            log10_p: found.test.p.log10(),
            corrected_log10_p: found.corrected.log10(),
            windows: self.windows.count(),
            hypotheses: found.hypotheses,
            correction: found.correction,
        }
    }
}
