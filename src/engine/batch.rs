//! What one forward pass works on: the rows of several sequences, each at its own position.

use super::cache::KvCache;
use super::cuda::Places;

/// At which positions of a sequence logits are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogitsAt {
    /// Nowhere: the tokens only enter the cache.
    None,
    /// At the last token.
    Last,
    /// At every token.
    Every,
}

/// The next tokens of one sequence.
#[derive(Debug)]
pub struct Sequence<'a> {
    /// Token ids, which stand at the positions from `cache.len()` on.
    pub ids: &'a [u32],
    /// The sequence's own cache; the pass appends to it.
    pub cache: &'a mut KvCache,
    /// Where logits are wanted.
    pub logits: LogitsAt,
}

/// Logits of some positions of one sequence: rows x vocabulary, row-major, f32, on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Logits {
    pub(super) vocab: usize,
    pub(super) data: Vec<f32>,
}

impl Logits {
    /// Number of rows: 0, 1 or the number of ids, as asked for.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.data.len() / self.vocab.max(1)
    }

    /// Number of ids of the vocabulary.
    #[must_use]
    pub fn vocab(&self) -> usize {
        self.vocab
    }

    /// Row `index`; `None` if there is no such row.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<&[f32]> {
        self.data.chunks_exact(self.vocab.max(1)).nth(index)
    }

    /// The last row; `None` if there is none.
    #[must_use]
    pub fn last(&self) -> Option<&[f32]> {
        self.data.chunks_exact(self.vocab.max(1)).next_back()
    }

    /// All rows, one after the other.
    #[must_use]
    pub fn into_vec(self) -> Vec<f32> {
        self.data
    }
}

/// Where the rows of one sequence stand in a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// First row of the pass.
    pub(super) first_row: usize,
    /// Number of rows, above 0.
    pub(super) rows: usize,
    /// Position in the sequence of the first row.
    pub(super) position: usize,
}

/// The rows of one pass.
#[derive(Debug, Default)]
pub(super) struct Pass<'a> {
    pub(super) ids: Vec<u32>,
    pub(super) spans: Vec<Span>,
    /// As many as spans.
    pub(super) caches: Vec<&'a mut KvCache>,
    /// Rows whose logits are wanted, ascending.
    pub(super) wanted: Vec<usize>,
    /// Where a device finds the caches; made by the first layer of the pass.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only a device reads it"))]
    pub(super) places: Option<Places>,
}

impl Pass<'_> {
    /// Position of every row in its sequence.
    pub(super) fn positions(&self) -> impl Iterator<Item = usize> {
        self.spans.iter().flat_map(|span| span.position..span.position + span.rows)
    }
}
