//! The result of one block: whole numbers only, so that adding and storing lose nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::stats::LogProbability;

/// What the passages of one block gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Its place.
    pub index: u64,
    /// One entry per length.
    pub tallies: Vec<Tally>,
    /// Every result that reached the largest alpha: of fixed keys at each length, of fresh keys at
    /// the passage's largest one.
    pub fired: Vec<Fired>,
}

/// Results at one length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// (scored tokens, passages, pairs with a fresh key), ascending.
    pub scored: Vec<(u32, u64, u64)>,
    /// (first, second, pairs) of the results that are told apart, ascending.
    pub cells: Vec<(u32, u32, u64)>,
}

/// One result that reached an alpha.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Fired {
    /// The passage's place in the corpus.
    pub passage: u32,
    /// The fixed key, or a fresh one.
    pub key: Option<u32>,
    /// The place of the length.
    pub length: u8,
    /// How many of the alphas, from the largest, were reached.
    pub levels: u8,
    /// log10 p in millionths: a whole number is stored and read back unchanged.
    pub micro_log10_p: i64,
}

/// [`Fired`] as a short JSON list.
type Stored = (u32, Option<u32>, u8, u8, i64);

impl From<Stored> for Fired {
    fn from((passage, key, length, levels, micro_log10_p): Stored) -> Self {
        Self { passage, key, length, levels, micro_log10_p }
    }
}

impl From<Fired> for Stored {
    fn from(fired: Fired) -> Self {
        (fired.passage, fired.key, fired.length, fired.levels, fired.micro_log10_p)
    }
}

/// Collects a block on several threads.
#[derive(Debug)]
pub(super) struct BlockBuilder {
    scored: Vec<BTreeMap<u32, (u64, u64)>>,
    cells: Vec<BTreeMap<(u32, u32), u64>>,
    fired: Vec<Fired>,
}

impl BlockBuilder {
    pub(super) fn new(lengths: usize) -> Self {
        Self {
            scored: vec![BTreeMap::new(); lengths],
            cells: vec![BTreeMap::new(); lengths],
            fired: Vec::new(),
        }
    }

    /// A passage that scores `scored` tokens at a length and meets `pairs` fresh keys.
    pub(super) fn passage(&mut self, length: usize, scored: u32, pairs: u32) {
        let entry = self.scored[length].entry(scored).or_default();
        *entry = (entry.0 + 1, entry.1 + u64::from(pairs));
    }

    /// A result under a fresh key.
    pub(super) fn pair(&mut self, length: usize, cell: Option<(u32, u32)>) {
        if let Some(cell) = cell {
            *self.cells[length].entry(cell).or_default() += 1;
        }
    }

    /// A result that reached an alpha.
    pub(super) fn fired(
        &mut self,
        passage: usize,
        key: Option<usize>,
        length: usize,
        levels: u8,
        p: LogProbability,
    ) {
        // Places in lists that fit memory and a plan of at most 16 lengths; log10 p of a passage
        // is above -2^40 by far.
        let place = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        #[expect(clippy::cast_possible_truncation, reason = "millionths of a log10 p")]
        self.fired.push(Fired {
            passage: place(passage),
            key: key.map(place),
            length: u8::try_from(length).unwrap_or(u8::MAX),
            levels,
            micro_log10_p: (p.log10() * 1e6).round() as i64,
        });
    }

    pub(super) fn merge(mut self, other: Self) -> Self {
        for (mine, theirs) in self.scored.iter_mut().zip(other.scored) {
            for (scored, (passages, pairs)) in theirs {
                let entry = mine.entry(scored).or_default();
                *entry = (entry.0 + passages, entry.1 + pairs);
            }
        }
        for (mine, theirs) in self.cells.iter_mut().zip(other.cells) {
            for (cell, pairs) in theirs {
                *mine.entry(cell).or_default() += pairs;
            }
        }
        self.fired.extend(other.fired);
        self
    }

    pub(super) fn finish(mut self, index: u64) -> Block {
        // Threads finish in any order.
        self.fired.sort_unstable();
        let tallies = self
            .scored
            .into_iter()
            .zip(self.cells)
            .map(|(scored, cells)| Tally {
                scored: scored.into_iter().map(|(key, (a, b))| (key, a, b)).collect(),
                cells: cells.into_iter().map(|((a, b), pairs)| (a, b, pairs)).collect(),
            })
            .collect();
        Block { index, tallies, fired: self.fired }
    }
}

/// The cells of one length over all blocks.
pub(super) fn cells(blocks: &[Block], length: usize) -> BTreeMap<(u32, u32), u64> {
    let mut all = BTreeMap::new();
    for &(a, b, pairs) in blocks.iter().flat_map(|block| &block.tallies[length].cells) {
        *all.entry((a, b)).or_default() += pairs;
    }
    all
}

/// Passages and pairs by scored tokens of one length over all blocks.
pub(super) fn scored(blocks: &[Block], length: usize) -> BTreeMap<u32, (u64, u64)> {
    let mut all: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for &(scored, passages, pairs) in blocks.iter().flat_map(|block| &block.tallies[length].scored)
    {
        let entry = all.entry(scored).or_default();
        *entry = (entry.0 + passages, entry.1 + pairs);
    }
    all
}
