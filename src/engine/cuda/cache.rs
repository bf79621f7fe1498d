//! Keys and values on the device, and the table that tells the kernels where they are.

use candle_core::cuda_backend::cudarc::driver::{CudaSlice, DevicePtr};
use candle_core::cuda_backend::{CudaDevice, DeviceId};

use super::failed;
use crate::engine::batch::Pass;
use crate::engine::cache::{Geometry, KvCache, Store};
use crate::error::{Error, Result};

/// Positions whose keys are interleaved (`LANES` of `layers.cuh`).
const LANES: usize = 32;

/// Words of the table per row: address, capacity, position (`Place` of `layers.cuh`).
pub(super) const PLACE_WORDS: usize = 3;

/// Keys and values of one sequence and all layers, in one piece of the device's memory.
#[derive(Debug)]
pub(in crate::engine) struct DeviceCache {
    data: CudaSlice<u8>,
    /// Positions there is room for: a multiple of [`LANES`].
    capacity: usize,
    device: DeviceId,
}

/// Makes a model's caches.
#[derive(Debug)]
pub(in crate::engine) struct Caches {
    device: CudaDevice,
}

impl Caches {
    pub(super) fn new(device: CudaDevice) -> Self {
        Self { device }
    }

    /// A cache with all its room taken.
    pub(in crate::engine) fn reserve(
        &self,
        geometry: Geometry,
        capacity: usize,
    ) -> Result<KvCache> {
        let Geometry { layers, heads, dim, kind } = geometry;
        let room = capacity.next_multiple_of(LANES);
        // Sizes of a configuration are bounded, their product is not.
        let bytes = [2, layers, heads, dim, kind.bytes()]
            .into_iter()
            .try_fold(room, usize::checked_mul)
            .unwrap_or(usize::MAX);
        let data = self.device.alloc_zeros::<u8>(bytes).map_err(|error| Error::Unavailable {
            what: format!("memory of the device for a cache of {capacity} tokens ({bytes} bytes)"),
            reason: error.to_string(),
            remedy: "ask for fewer tokens, or for fewer requests at a time".into(),
        })?;
        let cache = DeviceCache { data, capacity: room, device: self.device.id() };
        Ok(KvCache::on_device(cache, geometry, capacity))
    }

    /// Whether the cache lies where the model computes.
    pub(in crate::engine) fn made(&self, cache: &DeviceCache) -> bool {
        cache.device == self.device.id()
    }
}

/// Where every row of a pass finds its sequence's cache, as the kernels read it.
#[derive(Debug)]
pub(in crate::engine) struct Places {
    table: CudaSlice<u64>,
    rows: usize,
}

impl Places {
    /// For the rows of `pass`, filled up to `rows` with such that have no cache.
    pub(super) fn new(device: &CudaDevice, pass: &Pass<'_>, rows: usize) -> Result<Self> {
        let stream = device.cuda_stream();
        let mut table = Vec::with_capacity(rows * PLACE_WORDS);
        for (span, cache) in pass.spans.iter().zip(&pass.caches) {
            let Store::Device(cache) = &cache.store else {
                return Err(KvCache::foreign());
            };
            // One stream orders all work on the cache, so nothing has to be recorded.
            let (address, _) = cache.data.device_ptr(&stream);
            for position in span.position..span.position + span.rows {
                table.extend([address, cache.capacity as u64, position as u64]);
            }
        }
        table.resize(rows * PLACE_WORDS, 0);
        let table = device.clone_htod(&table).map_err(failed("copying the places of caches"))?;
        Ok(Self { table, rows })
    }

    pub(super) fn table(&self) -> &CudaSlice<u64> {
        &self.table
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }
}
