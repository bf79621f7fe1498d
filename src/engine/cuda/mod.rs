//! The operations on a CUDA device: matrix products by candle, the rest by the kernels of
//! `kernels/layers.cuh`.
//!
//! Every kernel of ours gives a row the same bits whatever else is in the pass; the matrix
//! products need [`BatchShape::Fixed`] for that. Logits stay on the device, where
//! [`DeviceSampler`] draws from them.

mod cache;
mod element;
mod launch;
mod linear;
mod open;
mod sampler;

use std::sync::Arc;

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::CudaDevice;
use candle_core::cuda_backend::cudarc::driver::CudaSlice;
use candle_core::op::BackpropOp;
use candle_core::{CudaStorage, DType, Device, Layout, Storage, Tensor as CandleTensor};

pub(super) use cache::{Caches, DeviceCache, Places};
pub(super) use open::{devices, open};
pub use sampler::{DeviceHistory, DeviceSampler, PreparedRows};

use super::batch::Pass;
use super::config::Config;
use super::cpu::Heads;
use super::linear::Storage as Stored;
use super::model::{self, Loaded, PASS_ROWS};
use super::models;
use super::ops::Ops;
use super::placement::{BatchShape, DeviceDtype, Placement};
use super::rope::{Pairing, Rope};
use super::scores::Scores;
use super::weights::{Tensor, Weights};
use crate::error::{Error, Result};
use element::Element;
use launch::Kernels;
use linear::{CudaLinear, Quantised};

/// Largest head that the attention kernel has room for (`LARGEST_HEAD` of `layers.cuh`).
const LARGEST_HEAD: usize = 256;

/// Loads a model for a CUDA device.
pub(super) fn load(
    placement: &Placement,
    config: &Config,
    weights: &Weights<'_>,
) -> Result<Loaded> {
    let device = open::with_own_stream(&placement.device)?;
    if config.heads.dim > LARGEST_HEAD {
        return Err(Error::Unsupported {
            what: "head size on a CUDA device",
            found: config.heads.dim.to_string(),
            supported: format!("up to {LARGEST_HEAD}; the CPU (--device cpu) has no limit"),
        });
    }
    let stored = weights.matrices();
    let quantised = stored.iter().any(|s| matches!(s, Stored::Blocks(_) | Stored::Candle(_)));
    let half = stored.iter().any(|s| matches!(s, Stored::F16 | Stored::Bf16));
    match placement.dtype {
        DeviceDtype::Auto if quantised && linear::HAS_QUANTISED_KERNELS => {
            load_as::<f32>(&device, placement.batch, Quantised::Kept, config, weights)
        }
        DeviceDtype::Auto if half => {
            load_as::<half::bf16>(&device, placement.batch, Quantised::Converted, config, weights)
        }
        DeviceDtype::Auto | DeviceDtype::F32 => {
            load_as::<f32>(&device, placement.batch, Quantised::Converted, config, weights)
        }
        DeviceDtype::Bf16 => {
            load_as::<half::bf16>(&device, placement.batch, Quantised::Converted, config, weights)
        }
    }
}

fn load_as<T: Element>(
    device: &CudaDevice,
    batch: BatchShape,
    quantised: Quantised,
    config: &Config,
    weights: &Weights<'_>,
) -> Result<Loaded> {
    let fixed = match batch {
        BatchShape::Free => None,
        BatchShape::Fixed(rows) => Some(rows),
    };
    let kernels = Kernels::load(device).map_err(|e| Error::backend("loading the kernels", e))?;
    let ops = CudaOps::<T> { kernels: Arc::new(kernels), fixed, quantised };
    let causal = models::load(&ops, config, weights)?;
    let kept = if quantised == Quantised::Kept { " and quantised weights" } else { "" };
    let shape = fixed.map_or(String::new(), |rows| format!(", {rows} rows a pass"));
    Ok(Loaded {
        causal,
        device: Device::Cuda(device.clone()),
        caches: model::Caches::Device(Caches::new(device.clone())),
        cache_type: T::CACHE,
        kernels: format!("CUDA, {}, {}{kept}{shape}", open::name(device), T::NAME),
        pass_rows: fixed.unwrap_or(PASS_ROWS),
    })
}

/// Computes on a device, activations in `T`.
pub(super) struct CudaOps<T> {
    kernels: Arc<Kernels<T>>,
    /// Rows of every pass, if that is fixed.
    fixed: Option<usize>,
    quantised: Quantised,
}

impl<T> Clone for CudaOps<T> {
    fn clone(&self) -> Self {
        Self { kernels: Arc::clone(&self.kernels), fixed: self.fixed, quantised: self.quantised }
    }
}

/// Activations: row-major, one row per token.
pub(super) struct CudaRows {
    storage: CudaStorage,
    rows: usize,
    /// Rows that stand for something: the others fill up a pass of fixed shape.
    real: usize,
    width: usize,
}

impl CudaRows {
    fn layout(&self) -> Layout {
        Layout::contiguous((self.rows, self.width))
    }

    /// The same rows with other content.
    fn with<T: Element>(&self, device: &CudaDevice, data: CudaSlice<T>) -> Self {
        let storage = CudaStorage::wrap_cuda_slice(data, device.clone());
        Self { storage, rows: self.rows, real: self.real, width: self.width }
    }
}

/// The rotation of every row of a pass.
pub(super) struct CudaRotation {
    /// Cosines of all rows, then sines.
    turns: CudaSlice<f32>,
    /// Pairs per row.
    half: usize,
    pairing: Pairing,
}

impl<T: Element> CudaOps<T> {
    fn device(&self) -> &CudaDevice {
        self.kernels.device()
    }

    /// Rows of a pass that has `real` ones.
    fn filled(&self, real: usize) -> usize {
        self.fixed.map_or(real, |rows| rows.max(real))
    }

    /// Copies row numbers to the device, filled up with zeros to `rows`.
    fn indices(
        &self,
        indices: impl Iterator<Item = u32>,
        rows: usize,
    ) -> candle_core::Result<CudaStorage> {
        let mut indices: Vec<u32> = indices.collect();
        indices.resize(rows, 0);
        let indices = self.device().clone_htod(&indices)?;
        Ok(CudaStorage::wrap_cuda_slice(indices, self.device().clone()))
    }

    fn product(&self, layer: &CudaLinear, xs: &CudaRows) -> candle_core::Result<CudaRows> {
        let mut storage = layer.multiply(&xs.storage, xs.rows)?;
        if let Some(bias) = layer.bias() {
            self.kernels.add_bias(storage.as_cuda_slice_mut::<T>()?, bias)?;
        }
        Ok(CudaRows { storage, rows: xs.rows, real: xs.real, width: layer.columns() })
    }
}

fn failed(what: &'static str) -> impl Fn(candle_core::Error) -> Error {
    move |error| {
        let text = error.to_string();
        // What candle passes on of the driver is its text.
        if text.contains("OUT_OF_MEMORY") {
            return Error::Unavailable {
                what: format!("memory of the device for {what}"),
                reason: text.lines().next().unwrap_or_default().to_owned(),
                remedy: "Ask for fewer texts at a time or shorter ones, or take --device cpu"
                    .into(),
            };
        }
        Error::backend(format!("{what} on the device"), error)
    }
}

impl<T: Element> Ops for CudaOps<T> {
    type Rows = CudaRows;
    type Linear = CudaLinear;
    type Vector = CudaSlice<f32>;
    type Rotation = CudaRotation;

    fn load_linear(&self, weight: &Tensor<'_>, bias: Option<&Tensor<'_>>) -> Result<CudaLinear> {
        CudaLinear::load::<T>(self.device(), self.quantised, weight, bias)
    }

    fn load_vector(&self, tensor: &Tensor<'_>) -> Result<CudaSlice<f32>> {
        linear::upload(self.device(), &tensor.to_f32()?)
    }

    fn embed(&self, table: &CudaLinear, ids: &[u32]) -> Result<CudaRows> {
        let rows = self.filled(ids.len());
        let embed = || {
            let indices = self.indices(ids.iter().copied(), rows)?;
            table.rows(indices, rows)
        };
        let storage = embed().map_err(failed("embedding"))?;
        Ok(CudaRows { storage, rows, real: ids.len(), width: table.inputs() })
    }

    fn linear<const N: usize>(
        &self,
        layers: [&CudaLinear; N],
        xs: &CudaRows,
    ) -> Result<[CudaRows; N]> {
        let products = layers
            .into_iter()
            .map(|layer| self.product(layer, xs))
            .collect::<candle_core::Result<Vec<_>>>()
            .map_err(failed("multiplying by a weight"))?;
        <[CudaRows; N]>::try_from(products)
            .map_err(|_| Error::backend("linear layers", "a result is missing"))
    }

    fn rms_norm(&self, xs: &CudaRows, weight: &CudaSlice<f32>, eps: f32) -> Result<CudaRows> {
        let norm = || self.kernels.rms_norm(xs.storage.as_cuda_slice()?, weight, eps);
        Ok(xs.with(self.device(), norm().map_err(failed("normalising"))?))
    }

    fn rotation(&self, rope: &Rope, pass: &Pass<'_>) -> Result<CudaRotation> {
        let real = pass.ids.len();
        let rows = self.filled(real);
        let filling = std::iter::repeat_n(0, rows - real);
        let rotation = rope.rotation(pass.positions().chain(filling));
        let half = rotation.cos.len() / rows.max(1);
        let mut turns = rotation.cos;
        turns.extend(rotation.sin);
        let turns = self.device().clone_htod(&turns).map_err(failed("copying angles"))?;
        Ok(CudaRotation { turns, half, pairing: rotation.pairing })
    }

    fn rotate(&self, xs: &mut CudaRows, rotation: &CudaRotation) -> Result<()> {
        let rows = xs.rows;
        let CudaRotation { turns, half, pairing } = rotation;
        let rotate = |xs: &mut CudaRows| {
            self.kernels.rotate(xs.storage.as_cuda_slice_mut()?, turns, rows, *half, *pairing)
        };
        rotate(xs).map_err(failed("rotating"))
    }

    fn attention(
        &self,
        pass: &mut Pass<'_>,
        layer: usize,
        heads: Heads,
        queries: &CudaRows,
        keys: &CudaRows,
        values: &CudaRows,
    ) -> Result<CudaRows> {
        // The first layer's table serves the others: caches advance only after the pass.
        let places = match pass.places.take() {
            Some(places) => places,
            None => Places::new(self.device(), pass, queries.rows)?,
        };
        let attend = || -> candle_core::Result<CudaSlice<T>> {
            let (keys, values) = (keys.storage.as_cuda_slice()?, values.storage.as_cuda_slice()?);
            self.kernels.append(&places, layer, heads, keys, values)?;
            self.kernels.attend(&places, layer, heads, queries.storage.as_cuda_slice()?)
        };
        let mixed = attend().map_err(failed("attending"))?;
        pass.places = Some(places);
        Ok(queries.with(self.device(), mixed))
    }

    fn silu_mul(&self, mut gate: CudaRows, up: &CudaRows) -> Result<CudaRows> {
        let multiply = |gate: &mut CudaRows| {
            let (gate, up) = (&mut gate.storage, &up.storage);
            self.kernels.silu_mul(gate.as_cuda_slice_mut::<T>()?, up.as_cuda_slice()?)
        };
        multiply(&mut gate).map_err(failed("gating"))?;
        Ok(gate)
    }

    fn add(&self, xs: &mut CudaRows, ys: &CudaRows) -> Result<()> {
        let add = |xs: &mut CudaRows| {
            let (xs, ys) = (&mut xs.storage, &ys.storage);
            self.kernels.add(xs.as_cuda_slice_mut::<T>()?, ys.as_cuda_slice()?)
        };
        add(xs).map_err(failed("adding"))
    }

    fn select(&self, xs: &CudaRows, rows: &[usize]) -> Result<CudaRows> {
        let count = self.filled(rows.len());
        let select = || {
            #[expect(clippy::cast_possible_truncation, reason = "a pass has at most 512 rows")]
            let indices = self.indices(rows.iter().map(|&row| row as u32), count)?;
            xs.storage.index_select(&indices, &xs.layout(), &Layout::contiguous(count), 0)
        };
        let storage = select().map_err(failed("selecting rows"))?;
        Ok(CudaRows { storage, rows: count, real: rows.len(), width: xs.width })
    }

    fn to_scores(&self, xs: CudaRows) -> Result<Scores> {
        let convert = || -> candle_core::Result<CandleTensor> {
            let layout = xs.layout();
            let CudaRows { storage, rows, real, width } = xs;
            let storage = match storage.dtype() {
                DType::F32 => storage,
                _ => storage.to_dtype(&layout, DType::F32)?,
            };
            let none = BackpropOp::none();
            CandleTensor::from_storage(Storage::Cuda(storage), (rows, width), none, false)
                .narrow(0, 0, real)
        };
        convert().map(Scores::Device).map_err(failed("converting logits"))
    }
}
