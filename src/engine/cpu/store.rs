//! The numbers of a key and value cache, as f32 or as f16.

use half::f16;

use super::aligned::Aligned;
use super::isa::Isa;
use super::lanes::{self, LANES};

/// Numbers of one type, zero at the start.
#[derive(Debug)]
pub(super) enum Store {
    F32(Aligned<f32>),
    F16(Aligned<u16>),
}

impl Store {
    /// `len` zeros, as f16 if `half`.
    pub(super) fn new(half: bool, len: usize) -> Self {
        if half { Self::F16(Aligned::new(0, len)) } else { Self::F32(Aligned::new(0.0, len)) }
    }

    /// Writes `values` from `start` on, one every `stride` places.
    pub(super) fn write(&mut self, start: usize, stride: usize, values: &[f32]) {
        match self {
            Self::F32(store) => {
                let places = store.as_mut_slice()[start..].iter_mut().step_by(stride);
                places.zip(values).for_each(|(place, &v)| *place = v);
            }
            Self::F16(store) => {
                let places = store.as_mut_slice()[start..].iter_mut().step_by(stride);
                places.zip(values).for_each(|(place, &v)| *place = f16::from_f32(v).to_bits());
            }
        }
    }

    /// Scores of 16 interleaved positions, whose keys of `dim` elements begin at `start`, with
    /// each of the queries `xs`.
    pub(super) fn score(
        &self,
        isa: Isa,
        start: usize,
        dim: usize,
        xs: &[f32],
        out: &mut [[f32; LANES]],
    ) {
        let range = start..start + dim * LANES;
        match self {
            Self::F32(store) => lanes::group_f32(isa, &store.as_slice()[range], dim, xs, out),
            Self::F16(store) => lanes::group_f16(isa, &store.as_slice()[range], dim, xs, out),
        }
    }

    /// Adds the values of `dim` elements from `start` on, times each query's weights, to the
    /// query's `dim` elements of `out`.
    pub(super) fn mix<'a>(
        &self,
        isa: Isa,
        start: usize,
        dim: usize,
        mut weights: impl Iterator<Item = &'a [f32]>,
        out: &mut [f32],
    ) {
        // Three queries at a time read each value once.
        let mut threes = out.chunks_exact_mut(3 * dim);
        for out in &mut threes {
            let (a, rest) = out.split_at_mut(dim);
            let (b, c) = rest.split_at_mut(dim);
            if let (Some(x), Some(y), Some(z)) = (weights.next(), weights.next(), weights.next()) {
                let range = start..start + x.len() * dim;
                let (weights, out) = ([x, y, z], [a, b, c]);
                match self {
                    Self::F32(s) => lanes::mix3_f32(isa, weights, &s.as_slice()[range], dim, out),
                    Self::F16(s) => lanes::mix3_f16(isa, weights, &s.as_slice()[range], dim, out),
                }
            }
        }
        for (out, weights) in threes.into_remainder().chunks_exact_mut(dim).zip(weights) {
            let range = start..start + weights.len() * dim;
            match self {
                Self::F32(s) => {
                    lanes::mix1_f32(isa, [weights], &s.as_slice()[range], dim, [out]);
                }
                Self::F16(s) => {
                    lanes::mix1_f16(isa, [weights], &s.as_slice()[range], dim, [out]);
                }
            }
        }
    }
}
