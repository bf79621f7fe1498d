//! Which tokens of a text count, and what each holds.
//!
//! A score depends on the scheme's effective input only, so a repeat of that input holds no new
//! evidence and is counted once: otherwise repetitive human text would be flagged far more often
//! than the stated rate.

use std::collections::HashSet;

use crate::scheme::Scheme;
use crate::token::{TokenId, TokenSet};

/// Why a token was not scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// Fewer previous tokens than the context is wide.
    Prefix,
    /// The same effective input was scored before.
    Repeated,
    /// A token that is never marked, such as end-of-sequence.
    Special,
}

impl Skip {
    /// The reason in a word or two.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Prefix => "without context",
            Self::Repeated => "repeated",
            Self::Special => "special",
        }
    }
}

/// What became of one token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// Counted, with this score.
    Scored(f64),
    /// Not counted.
    Skipped(Skip),
}

/// Counts of the tokens that were not scored, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// Too little context at the start.
    pub prefix: u64,
    /// The effective input was seen before.
    pub repeated: u64,
    /// Never marked.
    pub special: u64,
    /// Below an entropy threshold (only with entropies).
    pub low_entropy: u64,
    /// Without an entropy that belongs to them (only with entropies).
    pub unaligned: u64,
}

impl Skipped {
    /// Each count with its reason in words.
    #[must_use]
    pub fn by_reason(&self) -> [(u64, &'static str); 5] {
        [
            (self.prefix, Skip::Prefix.words()),
            (self.repeated, Skip::Repeated.words()),
            (self.special, Skip::Special.words()),
            (self.low_entropy, "of low entropy"),
            (self.unaligned, "unaligned"),
        ]
    }
}

/// The evidence of one sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// One entry per token of the text.
    pub outcomes: Vec<Outcome>,
    /// Number of scored tokens, T.
    pub scored: u64,
    /// Number of tokens that would be scored if repeats counted.
    pub raw: u64,
    /// Sum of the scores; the number of green tokens for a counting scheme.
    pub sum: f64,
    /// Sum of the scores if repeats counted.
    pub raw_sum: f64,
    /// The tokens left out.
    pub skipped: Skipped,
}

/// Whether a counting scheme's score of a token says green.
pub(super) fn is_green(score: f64) -> bool {
    score > 0.5
}

impl Evidence {
    /// Number of green tokens among the scored, for a scheme that counts.
    #[must_use]
    pub fn green(&self) -> u64 {
        let green =
            |outcome: &&Outcome| matches!(outcome, Outcome::Scored(score) if is_green(*score));
        self.outcomes.iter().filter(green).count() as u64
    }
}

/// What becomes of a token, whatever the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The first token with its effective input: counted.
    First,
    /// The effective input was seen before.
    Repeat,
    /// Holds no evidence.
    Without(Skip),
}

/// Which tokens of a sequence count: found once, scored under any number of keys.
///
/// The effective input of a token depends on the scheme and its context width, not on the key.
#[derive(Clone, Debug)]
pub struct Scorable {
    /// The end of the prompt and the tokens.
    sequence: Vec<TokenId>,
    width: usize,
    /// One entry per token; the first belongs to `sequence[sequence.len() - standings.len()]`.
    standings: Vec<Standing>,
}

impl Scorable {
    /// Looks through `tokens`, whose first contexts come from the end of `prompt`. The prompt
    /// itself is never scored. The key of `scheme` does not matter.
    ///
    /// Time is linear in the number of tokens; memory holds one entry per distinct effective
    /// input.
    #[must_use]
    pub fn new(
        scheme: &dyn Scheme,
        never_marked: &TokenSet,
        prompt: &[TokenId],
        tokens: &[TokenId],
    ) -> Self {
        let width = scheme.context_width();
        let tail = &prompt[prompt.len().saturating_sub(width)..];
        let sequence: Vec<TokenId> = tail.iter().chain(tokens).copied().collect();
        let mut standings = Vec::with_capacity(tokens.len());
        let mut seen: HashSet<Box<[TokenId]>> = HashSet::new();
        let mut input = Vec::with_capacity(width + 1);
        for position in tail.len()..sequence.len() {
            let token = sequence[position];
            standings.push(if position < width {
                Standing::Without(Skip::Prefix)
            } else if never_marked.contains(token) {
                Standing::Without(Skip::Special)
            } else {
                input.clear();
                scheme.effective_input(&sequence[position - width..position], token, &mut input);
                if seen.insert(input.as_slice().into()) {
                    Standing::First
                } else {
                    Standing::Repeat
                }
            });
        }
        Self { sequence, width, standings }
    }

    /// The evidence under the key of `scheme`, which is the scheme of [`Scorable::new`] under this
    /// or another key.
    #[must_use]
    pub fn evidence(&self, scheme: &dyn Scheme) -> Evidence {
        let mut evidence = Evidence {
            outcomes: Vec::with_capacity(self.standings.len()),
            scored: 0,
            raw: 0,
            sum: 0.0,
            raw_sum: 0.0,
            skipped: Skipped::default(),
        };
        for (index, &standing) in self.standings.iter().enumerate() {
            let outcome = match standing {
                Standing::Without(skip) => {
                    match skip {
                        Skip::Prefix => evidence.skipped.prefix += 1,
                        Skip::Special => evidence.skipped.special += 1,
                        Skip::Repeated => evidence.skipped.repeated += 1,
                    }
                    Outcome::Skipped(skip)
                }
                Standing::First => {
                    let score = self.score(scheme, index);
                    evidence.raw += 1;
                    evidence.raw_sum += score;
                    evidence.scored += 1;
                    evidence.sum += score;
                    Outcome::Scored(score)
                }
                Standing::Repeat => {
                    evidence.raw += 1;
                    evidence.raw_sum += self.score(scheme, index);
                    evidence.skipped.repeated += 1;
                    Outcome::Skipped(Skip::Repeated)
                }
            };
            evidence.outcomes.push(outcome);
        }
        evidence
    }

    /// The scores of the counted tokens under the key of `scheme`, with the index of each token,
    /// in the order of the text.
    pub fn scores<'a>(&'a self, scheme: &'a dyn Scheme) -> impl Iterator<Item = (usize, f64)> + 'a {
        self.standings
            .iter()
            .enumerate()
            .filter(|(_, standing)| **standing == Standing::First)
            .map(|(index, _)| (index, self.score(scheme, index)))
    }

    /// The number of counted tokens among the first `end`.
    #[must_use]
    pub fn scored_before(&self, end: usize) -> usize {
        let first = |standing: &&Standing| **standing == Standing::First;
        self.standings.iter().take(end).filter(first).count()
    }

    fn score(&self, scheme: &dyn Scheme, index: usize) -> f64 {
        let position = self.sequence.len() - self.standings.len() + index;
        scheme.score(&self.sequence[position - self.width..position], self.sequence[position])
    }
}

/// The evidence of `tokens`, whose first contexts come from the end of `prompt`; see
/// [`Scorable`].
#[must_use]
pub fn gather(
    scheme: &dyn Scheme,
    never_marked: &TokenSet,
    prompt: &[TokenId],
    tokens: &[TokenId],
) -> Evidence {
    Scorable::new(scheme, never_marked, prompt, tokens).evidence(scheme)
}
