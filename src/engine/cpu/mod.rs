//! The operations on the CPU, with kernels whose bits depend on nothing but the row.

mod aligned;
mod attention;
mod blocks;
#[cfg(target_arch = "x86_64")]
mod blocks_x86;
mod dense;
mod foreign;
mod isa;
mod kernels;
mod lanes;
mod product;
mod quantised;
mod rows;
mod store;

use rayon::prelude::*;
use std::sync::Arc;

pub(super) use attention::{Heads, LayerCache};
pub use blocks::BlockKind;
pub use isa::Isa;
pub use product::{Parts, apply, linear};
pub(super) use quantised::Quantised;
pub use rows::Rows;

use super::batch::Pass;
use super::cache::{KvCache, Store};
use super::linear::{Activations, Linear};
use super::ops::Ops;
use super::rope::{Pairing, Rope, Rotation};
use super::scores::Scores;
use super::weights::Tensor;
use crate::error::{Error, Result};

/// Rows from which element-wise work is spread over threads.
const PARALLEL_ROWS: usize = 16;

/// Computes on the CPU, in the current rayon pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cpu {
    isa: Isa,
}

impl Cpu {
    pub(super) fn new(isa: Isa) -> Self {
        Self { isa }
    }
}

/// A weight matrix and its bias.
#[derive(Clone, Debug)]
pub(super) struct CpuLinear {
    weight: Arc<dyn Linear>,
    bias: Option<Vec<f32>>,
}

impl Ops for Cpu {
    type Rows = Rows;
    type Linear = CpuLinear;
    type Vector = Vec<f32>;
    type Rotation = Rotation;

    fn load_linear(&self, weight: &Tensor<'_>, bias: Option<&Tensor<'_>>) -> Result<CpuLinear> {
        let [columns, inputs] = *weight.shape else {
            return Err(weight.error("not a matrix"));
        };
        Ok(CpuLinear {
            weight: linear(self.isa, weight.storage, columns, inputs, weight.data)?.into(),
            bias: bias.map(Tensor::to_f32).transpose()?,
        })
    }

    fn load_vector(&self, tensor: &Tensor<'_>) -> Result<Vec<f32>> {
        tensor.to_f32()
    }

    fn embed(&self, table: &CpuLinear, ids: &[u32]) -> Result<Rows> {
        let width = table.weight.in_features();
        let mut rows = Rows::zeros(ids.len(), width);
        for (&id, out) in ids.iter().zip(rows.data_mut().chunks_exact_mut(width)) {
            table.weight.weight_row(id as usize, out)?;
        }
        Ok(rows)
    }

    fn linear<const N: usize>(&self, layers: [&CpuLinear; N], xs: &Rows) -> Result<[Rows; N]> {
        let weights = layers.map(|layer| &*layer.weight);
        let mut results = apply(&weights, &Activations::new(xs))?;
        for (rows, layer) in results.iter_mut().zip(layers) {
            if let Some(bias) = &layer.bias {
                for row in rows.data_mut().chunks_exact_mut(bias.len()) {
                    for (x, b) in row.iter_mut().zip(bias) {
                        *x += b;
                    }
                }
            }
        }
        <[Rows; N]>::try_from(results)
            .map_err(|_| Error::backend("linear layers", "a result is missing"))
    }

    fn rms_norm(&self, xs: &Rows, weight: &Vec<f32>, eps: f32) -> Result<Rows> {
        let mut out = Rows::zeros(xs.len(), xs.width());
        let isa = self.isa;
        let each = |(x, out): (&[f32], &mut [f32])| {
            for (x, out) in x.chunks_exact(weight.len()).zip(out.chunks_exact_mut(weight.len())) {
                kernels::rms_norm(isa, x, weight, eps, out);
            }
        };
        per_row(xs, &mut out, each);
        Ok(out)
    }

    fn rotation(&self, rope: &Rope, pass: &Pass<'_>) -> Result<Rotation> {
        Ok(rope.rotation(pass.positions()))
    }

    fn rotate(&self, xs: &mut Rows, rotation: &Rotation) -> Result<()> {
        let rows = xs.len().max(1);
        let half = rotation.cos.len() / rows;
        let width = xs.width();
        if half == 0 {
            return Ok(());
        }
        for (row, x) in xs.data_mut().chunks_exact_mut(width).enumerate() {
            let cos = &rotation.cos[row * half..][..half];
            let sin = &rotation.sin[row * half..][..half];
            for head in x.chunks_exact_mut(2 * half) {
                match rotation.pairing {
                    Pairing::Halves => {
                        let (low, high) = head.split_at_mut(half);
                        for (((a, b), c), s) in low.iter_mut().zip(high).zip(cos).zip(sin) {
                            (*a, *b) = (*a * c - *b * s, *b * c + *a * s);
                        }
                    }
                    Pairing::Neighbours => {
                        for ((pair, c), s) in head.chunks_exact_mut(2).zip(cos).zip(sin) {
                            (pair[0], pair[1]) =
                                (pair[0] * c - pair[1] * s, pair[1] * c + pair[0] * s);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn attention(
        &self,
        pass: &mut Pass<'_>,
        layer: usize,
        heads: Heads,
        queries: &Rows,
        keys: &Rows,
        values: &Rows,
    ) -> Result<Rows> {
        let mut caches: Vec<&mut LayerCache> = Vec::with_capacity(pass.caches.len());
        for cache in &mut pass.caches {
            match &mut cache.store {
                Store::Cpu(layers) => caches.push(&mut layers[layer]),
                Store::Device(_) => return Err(KvCache::foreign()),
            }
        }
        Ok(attention::attention(self.isa, heads, &pass.spans, &mut caches, queries, keys, values))
    }

    fn silu_mul(&self, mut gate: Rows, up: &Rows) -> Result<Rows> {
        let isa = self.isa;
        per_row(up, &mut gate, |(up, gate)| kernels::silu_mul(isa, gate, up));
        Ok(gate)
    }

    fn add(&self, xs: &mut Rows, ys: &Rows) -> Result<()> {
        for (x, y) in xs.data_mut().iter_mut().zip(ys.data()) {
            *x += y;
        }
        Ok(())
    }

    fn select(&self, xs: &Rows, rows: &[usize]) -> Result<Rows> {
        let mut data = Vec::with_capacity(rows.len() * xs.width());
        for &row in rows {
            data.extend_from_slice(xs.row(row));
        }
        Ok(Rows::from_vec(xs.width(), data))
    }

    fn to_scores(&self, xs: Rows) -> Result<Scores> {
        Ok(Scores::Host(xs.into_vec()))
    }
}

/// Runs `each` on every pair of rows, on all threads where there are many.
fn per_row(xs: &Rows, out: &mut Rows, each: impl Fn((&[f32], &mut [f32])) + Sync + Send) {
    let (from, to) = (xs.width().max(1), out.width().max(1));
    if xs.len() >= PARALLEL_ROWS {
        xs.data()
            .par_chunks_exact(from)
            .zip(out.data_mut().par_chunks_exact_mut(to))
            .for_each(each);
    } else {
        xs.data().chunks_exact(from).zip(out.data_mut().chunks_exact_mut(to)).for_each(each);
    }
}
