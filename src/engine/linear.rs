//! Linear layers: the one trait that every weight format implements, and their product.
//!
//! A kernel that is faster, or runs elsewhere, is another implementation of [`Linear`]; no
//! model's file knows which one it has. This module knows nothing of layers or files.

use candle_core::quantized::GgmlDType;
use std::sync::OnceLock;

use super::cpu::Quantised;
pub use super::cpu::{BlockKind, Isa, Parts, Rows, apply, linear};
use crate::error::Result;

/// How the numbers of a weight matrix are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// 32-bit floats.
    F32,
    /// 16-bit IEEE floats; they are converted to f32.
    F16,
    /// bfloat16; kept as they are.
    Bf16,
    /// Blocks that this crate's own kernels multiply.
    Blocks(BlockKind),
    /// Blocks that candle multiplies.
    Candle(GgmlDType),
}

impl Storage {
    /// Values per block and bytes per block.
    #[must_use]
    pub fn layout(self) -> (usize, usize) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::Bf16 => (1, 2),
            Self::Blocks(kind) => (32, kind.bytes()),
            Self::Candle(dtype) => (dtype.block_size(), dtype.type_size()),
        }
    }

    /// Bytes of a row-major matrix of `columns` by `inputs`; `None` if `inputs` is no whole
    /// number of blocks or the product overflows.
    #[must_use]
    pub fn bytes(self, columns: usize, inputs: usize) -> Option<usize> {
        let (values, bytes) = self.layout();
        if !inputs.is_multiple_of(values) {
            return None;
        }
        (inputs / values).checked_mul(bytes)?.checked_mul(columns)
    }
}

/// The rows a linear layer is applied to. What several layers need of them, such as the
/// quantised form, is made once.
#[derive(Debug)]
pub struct Activations<'a> {
    rows: &'a Rows,
    quantised: OnceLock<Quantised>,
}

impl<'a> Activations<'a> {
    /// Wraps `rows`.
    #[must_use]
    pub fn new(rows: &'a Rows) -> Self {
        Self { rows, quantised: OnceLock::new() }
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &'a Rows {
        self.rows
    }

    pub(super) fn quantised(&self) -> &Quantised {
        self.quantised.get_or_init(|| Quantised::new(self.rows))
    }
}

/// A weight matrix of `out_features` by `in_features`: `y = x W^T`.
///
/// The result for one row must not depend on the other rows, on the number of threads, or on
/// how the work is cut.
pub trait Linear: Send + Sync + std::fmt::Debug {
    /// Width of a row that goes in.
    fn in_features(&self) -> usize;

    /// Width of a row that comes out.
    fn out_features(&self) -> usize;

    /// Multiplies every row, whose width must be `in_features`.
    ///
    /// # Errors
    /// [`crate::Error::Backend`] if a lower layer fails.
    fn forward(&self, xs: &Activations<'_>) -> Result<Rows>;

    /// Writes row `index` of the matrix, dequantised, into `out` (`in_features` long): the
    /// embedding of token `index`.
    ///
    /// # Errors
    /// [`crate::Error::Backend`] if a lower layer fails.
    fn weight_row(&self, index: usize, out: &mut [f32]) -> Result<()>;

    /// The layer as parts that can share one parallel pass with those of other layers.
    fn parts(&self) -> Option<&dyn Parts> {
        None
    }
}
