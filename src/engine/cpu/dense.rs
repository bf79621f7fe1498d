//! Weights stored as numbers: f32, and bf16 kept at 16 bits.
//!
//! Sixteen output columns are interleaved so that a vector lane is a column; each column's sum
//! runs over the inputs in ascending order, whatever the batch.

use rayon::prelude::*;

use super::aligned::Aligned;
use super::isa::Isa;
use super::lanes::{LANES, group_bf16, group_f32};

/// Weights of one element type, columns interleaved by 16.
#[derive(Debug)]
pub(super) struct Interleaved<E> {
    columns: usize,
    inputs: usize,
    /// `[column / 16][input][column % 16]`.
    lanes: Aligned<E>,
}

impl<E: Copy + Send + Sync> Interleaved<E> {
    /// Interleaves `columns` output features of `inputs` values each; `read` gives the value at
    /// a row-major index.
    fn new(columns: usize, inputs: usize, zero: E, read: impl Fn(usize) -> E + Sync) -> Self {
        let groups = columns.div_ceil(LANES);
        let mut lanes = Aligned::new(zero, groups * inputs * LANES);
        if inputs > 0 {
            let groups = lanes.as_mut_slice().par_chunks_exact_mut(inputs * LANES);
            groups.enumerate().for_each(|(g, group)| {
                let (group, _) = group.as_chunks_mut::<LANES>();
                for lane in 0..LANES.min(columns - g * LANES) {
                    let start = (g * LANES + lane) * inputs;
                    for (i, slot) in group.iter_mut().enumerate() {
                        slot[lane] = read(start + i);
                    }
                }
            });
        }
        Self { columns, inputs, lanes }
    }

    fn group(&self, index: usize) -> &[E] {
        let length = self.inputs * LANES;
        &self.lanes.as_slice()[index * length..][..length]
    }

    fn column(&self, column: usize, widen: impl Fn(E) -> f32, out: &mut [f32]) {
        let weights = self.group(column / LANES).iter().skip(column % LANES).step_by(LANES);
        for (out, &weight) in out.iter_mut().zip(weights) {
            *out = widen(weight);
        }
    }
}

/// A dense weight matrix.
#[derive(Debug)]
pub(super) enum Dense {
    F32(Interleaved<f32>),
    /// As bit patterns.
    Bf16(Interleaved<u16>),
}

impl Dense {
    /// From little-endian f32 values.
    pub(super) fn from_f32(columns: usize, inputs: usize, bytes: &[u8]) -> Self {
        Self::F32(Interleaved::new(columns, inputs, 0.0, |i| {
            let b = &bytes[i * 4..][..4];
            f32::from_le_bytes([b[0], b[1], b[2], b[3]])
        }))
    }

    /// From little-endian f16 values, which become f32.
    pub(super) fn from_f16(columns: usize, inputs: usize, bytes: &[u8]) -> Self {
        Self::F32(Interleaved::new(columns, inputs, 0.0, |i| {
            half::f16::from_le_bytes([bytes[i * 2], bytes[i * 2 + 1]]).to_f32()
        }))
    }

    /// From little-endian bf16 values, which stay what they are.
    pub(super) fn from_bf16(columns: usize, inputs: usize, bytes: &[u8]) -> Self {
        Self::Bf16(Interleaved::new(columns, inputs, 0, |i| {
            u16::from_le_bytes([bytes[i * 2], bytes[i * 2 + 1]])
        }))
    }

    pub(super) fn columns(&self) -> usize {
        match self {
            Self::F32(w) => w.columns,
            Self::Bf16(w) => w.columns,
        }
    }

    pub(super) fn inputs(&self) -> usize {
        match self {
            Self::F32(w) => w.inputs,
            Self::Bf16(w) => w.inputs,
        }
    }

    /// The products of group `index` with every row of `xs` (`out.len()` rows).
    pub(super) fn multiply(&self, isa: Isa, index: usize, xs: &[f32], out: &mut [[f32; LANES]]) {
        match self {
            Self::F32(w) => group_f32(isa, w.group(index), w.inputs, xs, out),
            Self::Bf16(w) => group_bf16(isa, w.group(index), w.inputs, xs, out),
        }
    }

    /// Writes the elements of one column.
    pub(super) fn column(&self, column: usize, out: &mut [f32]) {
        match self {
            Self::F32(w) => w.column(column, |w| w, out),
            Self::Bf16(w) => w.column(column, |w| half::bf16::from_bits(w).to_f32(), out),
        }
    }
}
