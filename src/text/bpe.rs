//! Byte-pair merging (Sennrich et al. 2016) over bytes.
//!
//! The pair of lowest rank is merged first, the leftmost on a tie. Short words use a scan, long
//! ones a queue, so that a word of n bytes costs O(n log n); both give the same tokens.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use crate::token::TokenId;

/// Words up to this many bytes are merged by scanning.
const SCAN: usize = 48;
/// Words up to this many bytes are remembered within one text.
const CACHED_WORD: usize = 64;
/// Most words remembered within one text.
const CACHED_WORDS: usize = 1 << 17;
/// Rank of a pair that does not merge.
const NEVER: (u32, TokenId) = (u32::MAX, 0);
/// No position.
const NONE: u32 = u32::MAX;

/// A token and how many bytes of the text it stands for.
pub(super) type Sized = (TokenId, u32);

/// Multiplicative hashing of two ids; vocabularies are fixed, so nobody can choose collisions.
#[derive(Default)]
pub(super) struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        // 2^64 divided by the golden ratio; the high bits are folded down because hash tables
        // use both ends.
        let mixed = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// Merge rules and the tokens of single bytes.
pub(super) struct Bpe {
    bytes: Box<[Option<TokenId>; 256]>,
    merges: HashMap<u64, (u32, TokenId), BuildHasherDefault<PairHasher>>,
    /// 256 x 256 bits; see [`Bpe::joins`].
    joins: Box<[u64; 1024]>,
    /// Words that are a token as they are, where merges are ignored for them.
    whole: HashMap<Vec<u8>, TokenId>,
}

/// What one text keeps while it is encoded.
#[derive(Default)]
pub(super) struct Scratch<'t> {
    cache: HashMap<&'t [u8], (usize, usize)>,
    cached: Vec<Sized>,
    run: Vec<Sized>,
    done: Vec<Sized>,
    /// Bytes without a token before the first token.
    orphans: u32,
}

impl Scratch<'_> {
    /// Appends a token, which also takes the bytes before it that no token stands for.
    pub(super) fn push(&mut self, out: &mut Vec<Sized>, (id, length): Sized) {
        out.push((id, length + std::mem::take(&mut self.orphans)));
    }

    /// Gives bytes that have no token to the token before, or else to the one after.
    pub(super) fn drop_bytes(&mut self, out: &mut [Sized], count: u32) {
        match out.last_mut() {
            Some(last) => last.1 += count,
            None => self.orphans += count,
        }
    }
}

fn key(left: TokenId, right: TokenId) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

impl Bpe {
    /// `merges` are (left, right, result, bytes of the result) in order of rank; a later rule for
    /// the same pair wins, as in the reference.
    pub(super) fn new<'v>(
        bytes: Box<[Option<TokenId>; 256]>,
        merges: impl Iterator<Item = (TokenId, TokenId, TokenId, &'v [u8])>,
        whole: HashMap<Vec<u8>, TokenId>,
    ) -> Self {
        let mut joins = Box::new([0u64; 1024]);
        let merges = (0u32..)
            .zip(merges)
            .map(|(rank, (left, right, result, token))| {
                for pair in token.windows(2) {
                    joins[usize::from(pair[0]) * 4 + usize::from(pair[1]) / 64] |=
                        1 << (pair[1] % 64);
                }
                (key(left, right), (rank, result))
            })
            .collect();
        Self { bytes, merges, joins, whole }
    }

    fn merge(&self, left: TokenId, right: TokenId) -> (u32, TokenId) {
        self.merges.get(&key(left, right)).copied().unwrap_or(NEVER)
    }

    /// Appends the tokens of one word.
    pub(super) fn word<'t>(&self, word: &'t [u8], scratch: &mut Scratch<'t>, out: &mut Vec<Sized>) {
        if !self.whole.is_empty()
            && let Some(&id) = self.whole.get(word)
        {
            #[expect(clippy::cast_possible_truncation, reason = "texts are below 2^32 bytes")]
            return scratch.push(out, (id, word.len() as u32));
        }
        let short = word.len() <= CACHED_WORD;
        if short && let Some(&(from, to)) = scratch.cache.get(word) {
            let Some((&(id, length), rest)) = scratch.cached[from..to].split_first() else {
                return;
            };
            out.push((id, length + std::mem::take(&mut scratch.orphans)));
            out.extend_from_slice(rest);
            return;
        }

        let mut run = std::mem::take(&mut scratch.run);
        let mut done = std::mem::take(&mut scratch.done);
        done.clear();
        let mut missing = false;
        let mut before = None;
        for &byte in word {
            match (self.bytes[usize::from(byte)], run.last_mut()) {
                (Some(id), _) => {
                    if before.is_some_and(|before| !self.joins(before, byte)) {
                        self.merge_run(&mut run, &mut done);
                    }
                    run.push((id, 1));
                    before = Some(byte);
                }
                // The reference leaves the byte out before it merges; so the neighbours may
                // merge across it, and its place goes to the token before.
                (None, Some(last)) => {
                    missing = true;
                    last.1 += 1;
                }
                (None, None) => {
                    missing = true;
                    scratch.drop_bytes(out, 1);
                }
            }
        }
        self.merge_run(&mut run, &mut done);
        if short && !missing && scratch.cache.len() < CACHED_WORDS {
            let from = scratch.cached.len();
            scratch.cached.extend_from_slice(&done);
            scratch.cache.insert(word, (from, scratch.cached.len()));
        }
        for &symbol in &done {
            scratch.push(out, symbol);
        }
        (scratch.run, scratch.done) = (run, done);
    }

    /// Whether some rule makes a token that holds the two bytes side by side. Where none does, no
    /// merge ever crosses, and the word may be cut there.
    fn joins(&self, left: u8, right: u8) -> bool {
        self.joins[usize::from(left) * 4 + usize::from(right) / 64] >> (right % 64) & 1 == 1
    }

    /// Merges a run and moves it to what is done.
    fn merge_run(&self, run: &mut Vec<Sized>, done: &mut Vec<Sized>) {
        if run.len() <= SCAN {
            self.merge_by_scan(run);
        } else {
            self.merge_by_queue(run);
        }
        done.append(run);
    }

    fn merge_by_scan(&self, symbols: &mut Vec<Sized>) {
        let mut ranks = [NEVER; SCAN];
        for (rank, pair) in ranks.iter_mut().zip(symbols.windows(2)) {
            *rank = self.merge(pair[0].0, pair[1].0);
        }
        while symbols.len() > 1 {
            let pairs = symbols.len() - 1;
            // `min_by_key` returns the first of equals.
            let Some((at, &(rank, id))) =
                ranks[..pairs].iter().enumerate().min_by_key(|(_, entry)| entry.0)
            else {
                return;
            };
            if rank == NEVER.0 {
                return;
            }
            symbols[at] = (id, symbols[at].1 + symbols[at + 1].1);
            symbols.remove(at + 1);
            ranks.copy_within(at + 1..pairs, at);
            if at > 0 {
                ranks[at - 1] = self.merge(symbols[at - 1].0, id);
            }
            if at + 1 < symbols.len() {
                ranks[at] = self.merge(id, symbols[at + 1].0);
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "texts are below 2^32 bytes")]
    fn merge_by_queue(&self, symbols: &mut Vec<Sized>) {
        let count = symbols.len();
        // A doubly linked list over the symbols; a merged right side has length 0.
        let mut next: Vec<u32> = (1..count as u32).chain([NONE]).collect();
        let mut previous: Vec<u32> = [NONE].into_iter().chain(0..count as u32 - 1).collect();
        let mut queue = Queue::default();
        for (at, pair) in symbols.windows(2).enumerate() {
            queue.push(self.merge(pair[0].0, pair[1].0).0, at as u32);
        }
        while let Some((queued, place)) = queue.pop() {
            let at = place as usize;
            let right = next[at];
            if symbols[at].1 == 0 || right == NONE {
                continue;
            }
            let right = right as usize;
            // An entry is stale when either side has merged since.
            let (rank, id) = self.merge(symbols[at].0, symbols[right].0);
            if rank != queued {
                continue;
            }
            symbols[at] = (id, symbols[at].1 + symbols[right].1);
            symbols[right].1 = 0;
            next[at] = next[right];
            if next[at] != NONE {
                let after = next[at] as usize;
                previous[after] = place;
                queue.push(self.merge(id, symbols[after].0).0, place);
            }
            if previous[at] != NONE {
                let before = previous[at];
                queue.push(self.merge(symbols[before as usize].0, id).0, before);
            }
        }
        symbols.retain(|symbol| symbol.1 != 0);
    }
}

/// Places by rank, lowest first, the leftmost of one rank first.
///
/// A heap of all places would do the same, but long texts would pay for reaching memory at
/// random. Merging nearly always makes pairs of higher rank, so the places of one rank are
/// gathered in a list and taken in one sweep; a heap holds the few that come too late for theirs.
#[derive(Default)]
struct Queue {
    lists: HashMap<u32, Vec<u32>, BuildHasherDefault<PairHasher>>,
    ranks: BinaryHeap<Reverse<u32>>,
    /// The rank being swept, its places in descending order, so that the last is the next.
    current: Option<u32>,
    places: Vec<u32>,
    /// Entries of ranks up to the current one.
    late: BinaryHeap<Reverse<(u32, u32)>>,
}

impl Queue {
    fn push(&mut self, rank: u32, place: u32) {
        if rank == NEVER.0 {
            return;
        }
        if self.current.is_some_and(|current| rank <= current) {
            self.late.push(Reverse((rank, place)));
            return;
        }
        let list = self.lists.entry(rank).or_default();
        if list.is_empty() {
            self.ranks.push(Reverse(rank));
        }
        list.push(place);
    }

    fn pop(&mut self) -> Option<(u32, u32)> {
        loop {
            let swept = self.current.zip(self.places.last().copied());
            if let Some(&Reverse(late)) = self.late.peek()
                && swept.is_none_or(|swept| late < swept)
            {
                self.late.pop();
                return Some(late);
            }
            if swept.is_some() {
                self.places.pop();
                return swept;
            }
            let Reverse(rank) = self.ranks.pop()?;
            self.places = self.lists.remove(&rank).unwrap_or_default();
            self.places.sort_unstable_by_key(|&place| Reverse(place));
            self.current = Some(rank);
        }
    }
}

impl std::fmt::Debug for Bpe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bpe").field("merges", &self.merges.len()).finish_non_exhaustive()
    }
}
