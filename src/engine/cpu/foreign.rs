//! Quantised types that candle multiplies: `Q5_0`, `Q5_1` and the K-quants.
//!
//! candle picks its kernel by the number of rows for some of them, and kernels differ in their
//! summation order. Those are called one row at a time, so that a row's bits do not depend on
//! its batch. candle runs on its own threads; each dot product is one thread's work.

use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{Device, Module, Tensor};
use std::borrow::Cow;
use std::sync::Arc;

use super::aligned::Aligned;
use super::rows::Rows;
use crate::error::{Error, Result};

/// A weight matrix in one of candle's quantised types.
#[derive(Debug)]
pub(super) struct Foreign {
    tensor: Arc<QTensor>,
    product: QMatMul,
    columns: usize,
    inputs: usize,
}

impl Foreign {
    /// From the file's bytes, of exactly the length that the type and the shape ask for.
    pub(super) fn new(
        dtype: GgmlDType,
        columns: usize,
        inputs: usize,
        bytes: &[u8],
    ) -> Result<Self> {
        // candle reads blocks in place and insists on their alignment.
        let mut copy: Aligned<u8>;
        let bytes = if bytes.as_ptr().align_offset(8) == 0 {
            bytes
        } else {
            copy = Aligned::new(0, bytes.len());
            copy.as_mut_slice().copy_from_slice(bytes);
            copy.as_slice()
        };
        let build = || -> candle_core::Result<(Arc<QTensor>, QMatMul)> {
            let storage = QStorage::from_data(Cow::Borrowed(bytes), &Device::Cpu, dtype)?;
            let tensor = Arc::new(QTensor::new(storage, (columns, inputs))?);
            let product = QMatMul::from_arc(tensor.clone())?;
            Ok((tensor, product))
        };
        let (tensor, product) = build().map_err(|e| Error::backend("loading a weight", e))?;
        Ok(Self { tensor, product, columns, inputs })
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    /// Whether candle's product of one row is the same, bit for bit, in any batch: true for the
    /// types that have a single kernel on this processor family.
    fn one_kernel(&self) -> bool {
        cfg!(target_arch = "x86_64")
            && matches!(
                self.tensor.dtype(),
                GgmlDType::Q5_0
                    | GgmlDType::Q5_1
                    | GgmlDType::Q2K
                    | GgmlDType::Q3K
                    | GgmlDType::Q5K
            )
    }

    pub(super) fn forward(&self, xs: &Rows) -> Result<Rows> {
        let step = if self.one_kernel() { xs.len().max(1) } else { 1 };
        let mut out = Vec::with_capacity(xs.len() * self.columns);
        for rows in xs.data().chunks(step * self.inputs) {
            let product = || -> candle_core::Result<Vec<f32>> {
                let rows = Tensor::from_slice(
                    rows,
                    (rows.len() / self.inputs, self.inputs),
                    &Device::Cpu,
                )?;
                self.product.forward(&rows)?.flatten_all()?.to_vec1()
            };
            out.extend(product().map_err(|e| Error::backend("multiplying by a weight", e))?);
        }
        Ok(Rows::from_vec(self.columns, out))
    }

    /// Writes the elements of one column, dequantised.
    pub(super) fn column(&self, column: usize, out: &mut [f32]) -> Result<()> {
        let read = || -> candle_core::Result<Vec<f32>> {
            let dtype = self.tensor.dtype();
            let bytes = self.tensor.data()?;
            let length = self.inputs / dtype.block_size() * dtype.type_size();
            let bytes = &bytes[column * length..][..length];
            let storage = QStorage::from_data(Cow::Borrowed(bytes), &Device::Cpu, dtype)?;
            QTensor::new(storage, (1, self.inputs))?
                .dequantize(&Device::Cpu)?
                .flatten_all()?
                .to_vec1()
        };
        out.copy_from_slice(&read().map_err(|e| Error::backend("reading an embedding", e))?);
        Ok(())
    }
}
