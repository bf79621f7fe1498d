//! The keys and values of one sequence.

use super::cpu::LayerCache;
use super::cuda::DeviceCache;
use crate::error::Error;

/// How a cache stores its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheType {
    /// 32-bit floats, for models whose weights are not quantised, and on a device that computes
    /// in them.
    F32,
    /// 16-bit IEEE floats, for quantised models on the CPU: half the memory, and half the memory
    /// traffic that makes a long context slow. A magnitude above 65504 becomes infinite and shows
    /// as logits that are no numbers.
    F16,
    /// bfloat16, on a device that computes in it.
    Bf16,
}

impl CacheType {
    /// Bytes of one number.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

/// Keys and values of the tokens that a sequence has had so far, for every layer.
///
/// All room is reserved when the cache is made and nothing is ever copied to grow it. On the CPU
/// the operating system backs the pages as positions are written, so memory in use is linear in
/// the length: layers x kv heads x head size x 2 x the cache type's bytes per position. On a
/// device the whole room is taken at once.
#[derive(Debug)]
pub struct KvCache {
    pub(super) store: Store,
    geometry: Geometry,
    len: usize,
    capacity: usize,
}

/// Where keys and values are.
#[derive(Debug)]
pub(super) enum Store {
    /// One per layer.
    Cpu(Vec<LayerCache>),
    Device(DeviceCache),
}

/// What a model asks of its caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) layers: usize,
    /// Key and value heads.
    pub(super) heads: usize,
    /// Elements of a head.
    pub(super) dim: usize,
    pub(super) kind: CacheType,
}

impl KvCache {
    pub(super) fn on_cpu(geometry: Geometry, capacity: usize) -> Self {
        let Geometry { layers, heads, dim, kind } = geometry;
        let half = kind == CacheType::F16;
        let layers = (0..layers).map(|_| LayerCache::new(half, heads, dim, capacity)).collect();
        Self { store: Store::Cpu(layers), geometry, len: 0, capacity }
    }

    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only a device has such caches"))]
    pub(super) fn on_device(cache: DeviceCache, geometry: Geometry, capacity: usize) -> Self {
        Self { store: Store::Device(cache), geometry, len: 0, capacity }
    }

    /// What the cache was made for.
    pub(super) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The refusal of a cache that another model, or the same one elsewhere, has made.
    pub(super) fn foreign() -> Error {
        Error::parameter("cache", "made for another model", "a cache of this model's new_cache")
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
