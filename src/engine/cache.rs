//! The keys and values of one sequence.

use super::cpu::{CacheType, LayerCache};

/// Keys and values of the tokens that a sequence has had so far, for every layer.
///
/// All room is reserved when the cache is made and nothing is ever copied to grow it; the
/// operating system backs the pages as positions are written, so memory in use is linear in the
/// length: layers x kv heads x head size x 2 x the cache type's bytes per position.
#[derive(Debug)]
pub struct KvCache {
    pub(super) layers: Vec<LayerCache>,
    /// kv heads and elements per head.
    pub(super) geometry: (usize, usize),
    len: usize,
    capacity: usize,
}

impl KvCache {
    pub(super) fn new(
        kind: CacheType,
        layers: usize,
        heads: usize,
        dim: usize,
        capacity: usize,
    ) -> Self {
        Self {
            layers: (0..layers).map(|_| LayerCache::new(kind, heads, dim, capacity)).collect(),
            geometry: (heads, dim),
            len: 0,
            capacity,
        }
    }

    /// Number of tokens in the cache: the position of the next one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no token is in the cache.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of tokens there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Forgets all but the first `len` tokens; does nothing if there are no more than that.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Forgets every token.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn advance(&mut self, tokens: usize) {
        self.len += tokens;
    }
}
