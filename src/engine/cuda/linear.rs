//! Weight matrices on the device.

use std::borrow::Cow;

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::CudaDevice;
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, DeviceRepr};
use candle_core::op::BackpropOp;
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{CudaStorage, CustomOp1, Device, Layout, Shape, Storage, Tensor as CandleTensor};
use half::bf16;

use super::element::Element;
use crate::engine::cpu::{BlockKind, Isa, linear};
use crate::engine::linear::Storage as Stored;
use crate::engine::weights::Tensor;
use crate::error::{Error, Result};

/// What becomes of quantised weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantised {
    /// candle multiplies them as they are.
    Kept,
    /// They are dequantised when they are loaded.
    Converted,
}

/// A weight matrix of `columns` by `inputs`, with its bias if it has one.
pub(in crate::engine) struct CudaLinear {
    weight: Weight,
    bias: Option<CudaSlice<f32>>,
    columns: usize,
    inputs: usize,
}

enum Weight {
    Dense(CudaStorage),
    Quantised(QTensor),
}

impl CudaLinear {
    pub(super) fn load<T: Element>(
        device: &CudaDevice,
        quantised: Quantised,
        weight: &Tensor<'_>,
        bias: Option<&Tensor<'_>>,
    ) -> Result<Self> {
        let [columns, inputs] = *weight.shape else {
            return Err(weight.error("not a matrix"));
        };
        let blocks = matches!(weight.storage, Stored::Blocks(_) | Stored::Candle(_));
        let stored = if blocks && quantised == Quantised::Kept {
            Weight::Quantised(load_blocks(device, weight, columns, inputs)?)
        } else {
            let values = numbers::<T>(weight, columns, inputs)?;
            let values = upload(device, &values)?;
            Weight::Dense(CudaStorage::wrap_cuda_slice(values, device.clone()))
        };
        let bias = match bias {
            Some(bias) => Some(upload(device, &bias.to_f32()?)?),
            None => None,
        };
        Ok(Self { weight: stored, bias, columns, inputs })
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(super) fn bias(&self) -> Option<&CudaSlice<f32>> {
        self.bias.as_ref()
    }

    /// The products of `rows` rows, without the bias.
    pub(super) fn multiply(
        &self,
        xs: &CudaStorage,
        rows: usize,
    ) -> candle_core::Result<CudaStorage> {
        let (columns, inputs) = (self.columns, self.inputs);
        let layout = Layout::contiguous((rows, inputs));
        match &self.weight {
            Weight::Dense(weight) => {
                // Stored by columns of the product, so that it is read transposed.
                let transposed = Layout::new(Shape::from((inputs, columns)), vec![1, inputs], 0);
                xs.matmul(weight, (1, rows, columns, inputs), &layout, &transposed)
            }
            Weight::Quantised(weight) => Ok(weight.cuda_fwd(xs, &layout)?.0),
        }
    }

    /// Rows `indices` (`count` of them, u32) of the matrix: the embeddings of those tokens.
    pub(super) fn rows(
        &self,
        indices: CudaStorage,
        count: usize,
    ) -> candle_core::Result<CudaStorage> {
        match &self.weight {
            Weight::Dense(weight) => {
                let table = Layout::contiguous((self.columns, self.inputs));
                weight.index_select(&indices, &table, &Layout::contiguous(count), 0)
            }
            Weight::Quantised(weight) => {
                let none = BackpropOp::none();
                let indices = Storage::Cuda(indices);
                let indices = CandleTensor::from_storage(indices, count, none, false);
                let rows = weight.embedding(&indices)?;
                let (storage, layout) = rows.storage_and_layout();
                match &*storage {
                    Storage::Cuda(storage) => storage.try_clone(layout),
                    _ => Err(candle_core::Error::msg("an embedding left its device")),
                }
            }
        }
    }
}

/// Copies numbers to the device.
pub(super) fn upload<T: DeviceRepr + 'static>(
    device: &CudaDevice,
    values: &[T],
) -> Result<CudaSlice<T>> {
    device.clone_htod(values).map_err(|error| Error::Unavailable {
        what: format!("memory of the device for {} bytes of weights", size_of_val(values)),
        reason: error.to_string(),
        remedy: "free memory of the device, take a smaller or quantised model, or --device cpu"
            .into(),
    })
}

/// The values of a matrix as `T`, dequantised where need be.
fn numbers<T: Element>(weight: &Tensor<'_>, columns: usize, inputs: usize) -> Result<Vec<T>> {
    match weight.storage {
        // Through f32 the large tables of a bf16 model would take three times their memory.
        Stored::Bf16 => Ok(weight
            .data
            .chunks_exact(2)
            .map(|b| T::from_bf16(bf16::from_le_bytes([b[0], b[1]])))
            .collect()),
        Stored::F32 | Stored::F16 => Ok(weight.to_f32()?.into_iter().map(T::from_f32).collect()),
        Stored::Blocks(_) | Stored::Candle(_) => {
            // The CPU's own layer reads every type; a second reader could differ from it.
            let layer = linear(Isa::best(), weight.storage, columns, inputs, weight.data)?;
            let mut row = vec![0.0; inputs];
            let mut values = Vec::with_capacity(columns * inputs);
            for index in 0..columns {
                layer.weight_row(index, &mut row)?;
                values.extend(row.iter().copied().map(T::from_f32));
            }
            Ok(values)
        }
    }
}

/// Whether candle's kernels for quantised weights were compiled; what stands in for them in other
/// builds ends the process, so there such weights are converted.
pub(super) const HAS_QUANTISED_KERNELS: bool =
    matches!(env!("GREENMARK_QUANTISED_KERNELS").as_bytes(), b"present");

/// A matrix of blocks that candle multiplies on the device.
fn load_blocks(
    device: &CudaDevice,
    weight: &Tensor<'_>,
    columns: usize,
    inputs: usize,
) -> Result<QTensor> {
    let dtype = block_type(weight.storage).ok_or_else(|| Error::Unsupported {
        what: "tensor type on a CUDA device",
        found: format!("{:?} of {}", weight.storage, weight.name),
        supported: "Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K; with --dtype f32 \
                    or --dtype bf16 the weights are dequantised when they are loaded"
            .into(),
    })?;
    let build = || {
        let device = Device::Cuda(device.clone());
        let storage = QStorage::from_data(aligned(weight.data), &device, dtype)?;
        QTensor::new(storage, (columns, inputs))
    };
    build().map_err(super::failed("loading quantised weights"))
}

/// candle looks at the bytes as blocks, some of which hold 32-bit numbers, before it copies them.
fn aligned(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.as_ptr().align_offset(align_of::<u32>()) == 0 {
        Cow::Borrowed(bytes)
    } else {
        // Memory from the allocator is aligned for any number.
        Cow::Owned(bytes.to_vec())
    }
}

/// The types that candle has kernels for.
fn block_type(stored: Stored) -> Option<GgmlDType> {
    match stored {
        Stored::Blocks(BlockKind::Q4_0) => Some(GgmlDType::Q4_0),
        Stored::Blocks(BlockKind::Q4_1) => Some(GgmlDType::Q4_1),
        Stored::Blocks(BlockKind::Q8_0) => Some(GgmlDType::Q8_0),
        Stored::Candle(
            dtype @ (GgmlDType::Q5_0
            | GgmlDType::Q5_1
            | GgmlDType::Q2K
            | GgmlDType::Q3K
            | GgmlDType::Q4K
            | GgmlDType::Q5K
            | GgmlDType::Q6K),
        ) => Some(dtype),
        Stored::F32 | Stored::F16 | Stored::Bf16 | Stored::Candle(_) => None,
    }
}
