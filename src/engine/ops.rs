//! The operations a model's file is written in.
//!
//! A model calls only these, so it runs wherever an implementation of [`Ops`] computes: the CPU
//! ([`super::cpu::Cpu`]) or a CUDA device (`super::cuda`). On the CPU every row's result is
//! independent of the other rows of a pass; on a device a matrix product may depend on how many
//! rows there are, which [`super::placement::BatchShape::Fixed`] keeps the same.

use super::batch::Pass;
use super::cpu::Heads;
use super::rope::Rope;
use super::scores::Scores;
use super::weights::Tensor;
use crate::error::Result;

/// Where and how a model computes.
pub(super) trait Ops: Clone + Send + Sync + 'static {
    /// Activations: one row per token.
    type Rows: Send;
    /// A weight matrix, quantised or not, with its bias if it has one.
    type Linear: Send + Sync;
    /// A vector of weights, such as a normalisation's.
    type Vector: Send + Sync;
    /// The rotation of a pass's rows.
    type Rotation: Send + Sync;

    /// Takes a weight matrix from a file.
    fn load_linear(&self, weight: &Tensor<'_>, bias: Option<&Tensor<'_>>) -> Result<Self::Linear>;

    /// Takes a vector from a file.
    fn load_vector(&self, tensor: &Tensor<'_>) -> Result<Self::Vector>;

    /// Rows `ids` of the embedding table.
    fn embed(&self, table: &Self::Linear, ids: &[u32]) -> Result<Self::Rows>;

    /// The rows times each matrix.
    fn linear<const N: usize>(
        &self,
        layers: [&Self::Linear; N],
        xs: &Self::Rows,
    ) -> Result<[Self::Rows; N]>;

    /// Root-mean-square normalisation over as many elements as the weight has: whole rows, or
    /// each head of a row.
    fn rms_norm(&self, xs: &Self::Rows, weight: &Self::Vector, eps: f32) -> Result<Self::Rows>;

    /// Cosines and sines for the positions of a pass.
    fn rotation(&self, rope: &Rope, pass: &Pass<'_>) -> Result<Self::Rotation>;

    /// Rotates each head (of twice the rotation's width) of every row.
    fn rotate(&self, xs: &mut Self::Rows, rotation: &Self::Rotation) -> Result<()>;

    /// Appends keys and values of layer `layer` to the caches and attends.
    fn attention(
        &self,
        pass: &mut Pass<'_>,
        layer: usize,
        heads: Heads,
        queries: &Self::Rows,
        keys: &Self::Rows,
        values: &Self::Rows,
    ) -> Result<Self::Rows>;

    /// `silu(gate) * up`.
    fn silu_mul(&self, gate: Self::Rows, up: &Self::Rows) -> Result<Self::Rows>;

    /// `xs += ys`.
    fn add(&self, xs: &mut Self::Rows, ys: &Self::Rows) -> Result<()>;

    /// The given rows.
    fn select(&self, xs: &Self::Rows, rows: &[usize]) -> Result<Self::Rows>;

    /// The rows as logits in f32, where they are computed.
    fn to_scores(&self, xs: Self::Rows) -> Result<Scores>;
}
