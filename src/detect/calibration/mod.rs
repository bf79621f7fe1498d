//! How often text without a mark fires, counted over passages and keys.
//!
//! Two questions that must not be mixed:
//!
//! - **Validity of the test.** Every pair of a passage and a key has a fresh random key, so pairs
//!   are independent and the p-values are exact: the measured rate of p <= alpha must agree with
//!   the attainable one. The attainable rate is below alpha because a count is discrete; it is
//!   computed for the number of tokens that each passage scores.
//! - **Fixed keys.** One key meets the same words again and again, so passages fire together and
//!   the rate under one key need not be the nominal one. It is reported with its spread over keys
//!   and with intervals that resample whole documents.
//!
//! The work is cut into blocks whose results are whole numbers: they can be computed in any order,
//! on any number of threads, stored and added, and the result is the same to the last digit.
//!
//! Nothing here reads files or text; a passage is its token ids.

mod block;
mod corpus;
mod fixed;
mod levels;
mod plan;
mod resample;
mod validity;

use rayon::prelude::*;
use serde::Serialize;

use crate::detect::Scorable;
use crate::detect::calibration::block::BlockBuilder;
use crate::detect::calibration::levels::Levels;
use crate::prf::{Key, KeyFingerprint, PrfTag, draw_seed};
use crate::profile::Profile;
use crate::scheme::{Scheme, build};
use crate::token::TokenSet;

pub use block::{Block, Fired, Tally};
pub use corpus::{Corpus, Passage};
pub use fixed::{FixedKeys, FixedRate, KeyRate};
pub use plan::Plan;
pub use validity::{Validity, ValidityRate};

const FRESH_KEYS: PrfTag = PrfTag::new("greenmark/calibration-fresh/1");
const FIXED_KEYS: PrfTag = PrfTag::new("greenmark/calibration-fixed/1");

/// About this many (passage, key) pairs are one block.
const BLOCK_PAIRS: u64 = 16_384;

/// A calibration that can be run block by block.
#[derive(Debug)]
pub struct Calibration {
    corpus: Corpus,
    plan: Plan,
    profile: Profile,
    never_marked: TokenSet,
    fixed: Vec<Box<dyn Scheme>>,
    fixed_fingerprints: Vec<KeyFingerprint>,
    levels: Levels,
    fingerprint: String,
}

/// What all blocks together say.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Passages of the corpus.
    pub passages: u64,
    /// Documents that the passages come from.
    pub documents: u64,
    /// One row for each length: fresh keys.
    pub validity: Vec<Validity>,
    /// One row for each length: fixed keys.
    pub fixed_keys: Vec<FixedKeys>,
}

/// A passage and how often it fired at the largest alpha.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FiringPassage {
    /// The document's name.
    pub document: String,
    /// Where the passage starts in the document, in bytes.
    pub offset: u64,
    /// Its number of tokens.
    pub tokens: u64,
    /// Number of keys, fresh and fixed, under which it fired.
    pub fired: u64,
    /// Number of keys it met.
    pub keys: u64,
    /// `fired` of `keys`.
    pub rate: f64,
    /// The smallest p that any key gave.
    pub log10_p: f64,
    /// Its place in [`Calibration::corpus`].
    #[serde(skip)]
    pub passage: usize,
}

impl Calibration {
    /// Joins the parts. `profile` gives scheme and context; the key it names is not used, only
    /// `fixed_keys` and fresh ones are. `never_marked` is that of the profile's tokenizer.
    #[must_use]
    pub fn new(
        corpus: Corpus,
        plan: Plan,
        profile: Profile,
        never_marked: TokenSet,
        fixed_keys: &[Key],
    ) -> Self {
        let fixed: Vec<_> = fixed_keys.iter().map(|key| build(&profile, key)).collect();
        let fixed_fingerprints = fixed_keys.iter().map(Key::fingerprint).collect();
        let null = build(&profile, &fresh_key(plan.seed(), 0, 0)).null();
        let levels = Levels::new(null, plan.alphas(), plan.longest());
        let fingerprint = plan.fingerprint(&corpus, &profile, fixed_keys);
        Self { corpus, plan, profile, never_marked, fixed, fixed_fingerprints, levels, fingerprint }
    }

    /// The passages, in the order that does not depend on the input's.
    #[must_use]
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// What is done.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Stands for everything that the result depends on; a stored block of another fingerprint
    /// belongs to another calibration. It gives no key away.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Number of blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        (self.corpus.passages().len() as u64).div_ceil(self.block_passages())
    }

    fn block_passages(&self) -> u64 {
        let passages = self.corpus.passages().len() as u64;
        let keys = self.plan.pairs().div_ceil(passages.max(1)) + self.fixed.len() as u64;
        (BLOCK_PAIRS / keys.max(1)).max(1)
    }

    /// The number of fresh keys that a passage meets.
    fn rounds(&self, passage: usize) -> u32 {
        let passages = self.corpus.passages().len() as u64;
        let more = u64::from((passage as u64) < self.plan.pairs() % passages.max(1));
        // A plan has at most `Plan::MOST_PAIRS`, which is below 2^32.
        u32::try_from(self.plan.pairs() / passages.max(1) + more).unwrap_or(u32::MAX)
    }

    /// Computes block `index`, on all threads of rayon's pool.
    #[must_use]
    pub fn block(&self, index: u64) -> Block {
        let size = usize::try_from(self.block_passages()).unwrap_or(usize::MAX);
        let all = self.corpus.passages();
        let first = usize::try_from(index).unwrap_or(usize::MAX).saturating_mul(size);
        let last = first.saturating_add(size).min(all.len());
        (first..last)
            .into_par_iter()
            .fold(
                || BlockBuilder::new(self.plan.lengths().len()),
                |mut builder, passage| {
                    self.passage(passage, &mut builder);
                    builder
                },
            )
            .reduce(|| BlockBuilder::new(self.plan.lengths().len()), BlockBuilder::merge)
            .finish(index)
    }

    /// Scores one passage under all of its keys.
    fn passage(&self, index: usize, builder: &mut BlockBuilder) {
        let ids = &self.corpus.passages()[index].ids;
        let filled = self.plan.lengths().partition_point(|&length| length as usize <= ids.len());
        if filled == 0 {
            return;
        }
        let ids = &ids[..self.plan.lengths()[filled - 1] as usize];
        // The key does not decide which tokens count.
        let any = build(&self.profile, &fresh_key(self.plan.seed(), index, 0));
        let scorable = Scorable::new(&*any, &self.never_marked, &[], ids);
        let rounds = self.rounds(index);
        for round in 0..rounds {
            let key = fresh_key(self.plan.seed(), index, round);
            let scheme = build(&self.profile, &key);
            self.score(&scorable, &*scheme, filled, |length, scored, statistic| {
                let levels = self.levels.reached(scored, statistic);
                builder.pair(length, self.levels.cell(scored, statistic));
                if length + 1 == filled && levels > 0 {
                    builder.fired(index, None, length, levels, self.levels.p(scored, statistic));
                }
            });
        }
        for (key, scheme) in self.fixed.iter().enumerate() {
            self.score(&scorable, &**scheme, filled, |length, scored, statistic| {
                let levels = self.levels.reached(scored, statistic);
                if levels > 0 {
                    let p = self.levels.p(scored, statistic);
                    builder.fired(index, Some(key), length, levels, p);
                }
            });
        }
        for length in 0..filled {
            let end = self.plan.lengths()[length] as usize;
            // At most the longest length of a plan.
            let scored = u32::try_from(scorable.scored_before(end)).unwrap_or(u32::MAX);
            builder.passage(length, scored, rounds);
        }
    }

    /// Calls `found` with the place of each of the first `filled` lengths, the number of tokens
    /// scored in it and the sum of their scores.
    fn score(
        &self,
        scorable: &Scorable,
        scheme: &dyn Scheme,
        filled: usize,
        mut found: impl FnMut(usize, u32, f64),
    ) {
        let mut scores = scorable.scores(scheme).peekable();
        let (mut scored, mut sum) = (0, 0.0);
        for (place, &length) in self.plan.lengths()[..filled].iter().enumerate() {
            while let Some((_, score)) = scores.next_if(|(index, _)| *index < length as usize) {
                scored += 1;
                sum += score;
            }
            found(place, scored, sum);
        }
    }

    /// Whether `block` can be one of this calibration's: a stored one may be damaged, and the
    /// numbers of the others are taken on trust.
    #[must_use]
    pub fn accepts(&self, block: &Block) -> bool {
        let (lengths, longest) = (self.plan.lengths().len(), self.plan.longest());
        let (passages, pairs) = (self.corpus.passages().len(), self.plan.pairs());
        let tally = |tally: &block::Tally| {
            tally.scored.iter().all(|&(scored, texts, met)| {
                scored <= longest && texts <= passages as u64 && met <= pairs
            }) && tally.cells.iter().all(|&(first, second, met)| {
                self.levels.is_cell((first, second), longest) && met <= pairs
            })
        };
        let fired = |fired: &block::Fired| {
            (fired.passage as usize) < passages
                && fired.key.is_none_or(|key| (key as usize) < self.fixed.len())
                && usize::from(fired.length) < lengths
                && usize::from(fired.levels) <= self.plan.alphas().len()
        };
        block.index < self.blocks()
            && block.tallies.len() == lengths
            && block.tallies.iter().all(tally)
            && block.fired.iter().all(fired)
    }

    /// What all blocks say. `blocks` holds each block once, in any order, and each is one that
    /// [`Calibration::accepts`].
    #[must_use]
    pub fn summary(&self, blocks: &[Block]) -> Summary {
        Summary {
            passages: self.corpus.passages().len() as u64,
            documents: self.corpus.documents().len() as u64,
            validity: validity::rows(&self.plan, &self.levels, blocks),
            fixed_keys: fixed::rows(self, blocks),
        }
    }

    /// The passages that fire under most of the keys they met, at most `count`; of equals the one
    /// with the smaller p first.
    ///
    /// By chance alone a share alpha of passages fires under any one key: a passage of this list
    /// is remarkable when it fires under many.
    #[must_use]
    pub fn most_firing(&self, blocks: &[Block], count: usize) -> Vec<FiringPassage> {
        let mut firing = std::collections::BTreeMap::new();
        for fired in blocks.iter().flat_map(|block| &block.fired) {
            let passage = &self.corpus.passages()[fired.passage as usize];
            let filled =
                self.plan.lengths().partition_point(|&length| length as usize <= passage.ids.len());
            if usize::from(fired.length) + 1 == filled {
                let entry = firing.entry(fired.passage as usize).or_insert((0u64, i64::MAX));
                *entry = (entry.0 + 1, entry.1.min(fired.micro_log10_p));
            }
        }
        let mut list: Vec<FiringPassage> = firing
            .into_iter()
            .map(|(index, (fired, micro))| {
                let passage = &self.corpus.passages()[index];
                let keys = u64::from(self.rounds(index)) + self.fixed.len() as u64;
                FiringPassage {
                    document: self.corpus.documents()[passage.document as usize].clone(),
                    offset: passage.offset,
                    tokens: passage.ids.len() as u64,
                    fired,
                    keys,
                    rate: fired as f64 / keys as f64,
                    log10_p: micro as f64 / 1e6,
                    passage: index,
                }
            })
            .collect();
        list.sort_by(|a, b| {
            (b.rate.total_cmp(&a.rate))
                .then(a.log10_p.total_cmp(&b.log10_p))
                .then_with(|| (&a.document, a.offset).cmp(&(&b.document, b.offset)))
        });
        list.truncate(count);
        list
    }
}

/// The fresh key of a passage: public, since it protects nothing.
fn fresh_key(seed: u64, passage: usize, round: u32) -> Key {
    Key::from_bytes(draw_seed(FRESH_KEYS, seed, round, passage as u64))
}

/// `count` fixed keys for a calibration without a deployed one. They protect nothing.
#[must_use]
pub fn fixed_keys(seed: u64, count: u32) -> Vec<Key> {
    (0..count).map(|index| Key::from_bytes(draw_seed(FIXED_KEYS, seed, index, 0))).collect()
}
