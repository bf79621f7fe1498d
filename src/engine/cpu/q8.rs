//! Activations quantised to 8 bits, in blocks of 32 along each row.
//!
//! Each row is quantised by itself, so a row's integers do not depend on the batch it is in.
//! The scheme is ggml's Q8 (scale = largest magnitude / 127, round to nearest), with the scale
//! kept in f32.

use rayon::prelude::*;

use super::rows::Rows;

/// Elements of a block.
pub(super) const BLOCK: usize = 32;

/// One block of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Q8Block {
    /// The integers, -127..=127, in groups of four as the dot-product instructions take them.
    pub(super) quants: [[i8; 4]; BLOCK / 4],
    /// value = scale * integer.
    pub(super) scale: f32,
    /// Sum of the integers.
    pub(super) sum: i32,
    /// scale * sum: the block's sum of values.
    pub(super) total: f32,
}

/// The quantised rows of a matrix, block after block, row after row.
#[derive(Debug)]
pub(in crate::engine) struct Q8Rows {
    pub(super) blocks: Vec<Q8Block>,
    pub(super) per_row: usize,
}

impl Q8Rows {
    /// Quantises every row of `xs`, whose width is a multiple of 32.
    pub(in crate::engine) fn quantise(xs: &Rows) -> Self {
        let per_row = xs.width() / BLOCK;
        let blocks = if xs.len() >= 16 {
            xs.data().par_chunks_exact(BLOCK).with_min_len(64).map(quantise_block).collect()
        } else {
            xs.data().chunks_exact(BLOCK).map(quantise_block).collect()
        };
        Self { blocks, per_row }
    }
}

#[expect(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "bit patterns are taken apart; the integers lie in -127..=127"
)]
fn quantise_block(xs: &[f32]) -> Q8Block {
    /// 1.5 * 2^23: adding it leaves the nearest integer (ties to even) in the low bits.
    const ROUND: f32 = 12_582_912.0;
    // Bit patterns of magnitudes order like the magnitudes, with NaN above infinity, so that a
    // value that is no number is seen and not lost.
    let top = f32::from_bits(xs.iter().fold(0, |m, x| m.max(x.to_bits() & 0x7fff_ffff)));
    if !top.is_finite() {
        return Q8Block { quants: [[0; 4]; BLOCK / 4], scale: f32::NAN, sum: 0, total: f32::NAN };
    }
    let scale = top / 127.0;
    // A subnormal scale has no finite reciprocal; such a block is zero at any useful precision.
    let inverse = if scale >= f32::MIN_POSITIVE { 1.0 / scale } else { 0.0 };
    let scale = if inverse == 0.0 { 0.0 } else { scale };
    let mut quants = [[0i8; 4]; BLOCK / 4];
    let mut sum = 0;
    for (four, chunk) in quants.iter_mut().zip(xs.chunks_exact(4)) {
        for (q, &x) in four.iter_mut().zip(chunk) {
            let integer = (x * inverse + ROUND).to_bits() as i32 - ROUND.to_bits() as i32;
            *q = integer as i8;
            sum += integer;
        }
    }
    Q8Block { quants, scale, sum, total: scale * sum as f32 }
}
