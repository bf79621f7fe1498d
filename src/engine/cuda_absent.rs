//! Takes the place of the CUDA backend in builds without it: its names, and its refusals.

use candle_core::{Device, Tensor};

use super::cache::{Geometry, KvCache};
use super::config::Config;
use super::device::{DeviceChoice, DeviceReport};
use super::model::Loaded;
use super::placement::Placement;
use super::weights::Weights;
use crate::error::{Error, Result};
use crate::sample::kernel::{Batch, HistoryShape, RowResult};
use crate::token::TokenId;

const NO_CUDA: &str = "this build has no CUDA: build with the feature `cuda` (`tools/gpu-build`)";

/// There is no cache on a device.
#[derive(Debug)]
pub(super) enum DeviceCache {}

/// There are no caches on a device to be found.
#[derive(Debug)]
pub(super) enum Places {}

/// There is no device to make caches on.
#[derive(Debug)]
pub(super) enum Caches {}

impl Caches {
    pub(super) fn reserve(&self, _geometry: Geometry, _capacity: usize) -> Result<KvCache> {
        match *self {}
    }

    pub(super) fn made(&self, _cache: &DeviceCache) -> bool {
        match *self {}
    }
}

/// There is no device to draw on.
#[derive(Debug)]
pub(super) enum DeviceSampler {}

/// There are no rows on a device.
#[derive(Debug)]
pub(super) enum PreparedRows {}

/// There is no history on a device.
#[derive(Debug)]
pub(super) enum DeviceHistory {}

impl DeviceHistory {
    pub(super) fn address(&self) -> u64 {
        match *self {}
    }
}

impl DeviceSampler {
    pub(super) fn new(device: &Device, _vocab: usize) -> Result<Self> {
        Err(absent(&format!("{:?}", device.location())))
    }

    pub(super) fn history(
        &self,
        _shape: HistoryShape,
        _prompt: &[TokenId],
    ) -> Result<DeviceHistory> {
        match *self {}
    }

    pub(super) fn prepare(&self, _batch: &Batch) -> Result<PreparedRows> {
        match *self {}
    }

    pub(super) fn launch(
        &mut self,
        _logits: &Tensor,
        _rows: &PreparedRows,
        _histories: &[&DeviceHistory],
    ) -> Result<()> {
        match *self {}
    }

    pub(super) fn results(&self, _count: usize) -> Result<Vec<RowResult>> {
        match *self {}
    }
}

pub(super) fn open(ordinal: usize) -> Result<Device> {
    Err(absent(&DeviceChoice::Cuda(ordinal).to_string()))
}

pub(super) fn load(
    placement: &Placement,
    _config: &Config,
    _weights: &Weights<'_>,
) -> Result<Loaded> {
    Err(absent(&format!("{:?}", placement.device.location())))
}

pub(super) fn devices() -> DeviceReport {
    DeviceReport { reason: Some(NO_CUDA.to_owned()), ..DeviceReport::default() }
}

fn absent(found: &str) -> Error {
    Error::Unsupported {
        what: "device",
        found: found.to_owned(),
        supported: format!("auto and cpu; {NO_CUDA}"),
    }
}
