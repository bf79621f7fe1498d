//! Activations quantised to 16 bits, in blocks of 32 along each row.
//!
//! Each row is quantised by itself, so a row's integers do not depend on the batch it is in.
//! Eight bits, as other engines use, cost this crate's default model 0.05 nats of every
//! log-probability; sixteen cost a thousandth of that. A 16-bit integer is held as two 8-bit
//! ones, 255 * high + low, because the instructions multiply bytes; both lie in -127..=127, so
//! that changing a sign never overflows.

use rayon::prelude::*;

use super::rows::Rows;

/// Elements of a block.
pub(super) const BLOCK: usize = 32;

/// What the high byte counts.
pub(super) const BASE: i32 = 255;

/// The largest integer: 255 * 127 + 127.
const LARGEST: f32 = 32_512.0;

/// One block of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// High bytes, in groups of four as the dot-product instructions take them.
    pub(super) high: [[i8; 4]; BLOCK / 4],
    /// Low bytes.
    pub(super) low: [[i8; 4]; BLOCK / 4],
    /// value = scale * integer.
    pub(super) scale: f32,
    /// Sum of the integers.
    pub(super) sum: i32,
    /// scale * sum: the block's sum of values.
    pub(super) total: f32,
}

/// The quantised rows of a matrix, block after block, row after row.
#[derive(Debug)]
pub(in crate::engine) struct Quantised {
    pub(super) blocks: Vec<Block>,
    pub(super) per_row: usize,
}

impl Quantised {
    /// Quantises every row of `xs`, whose width is a multiple of 32.
    pub(in crate::engine) fn new(xs: &Rows) -> Self {
        let per_row = xs.width() / BLOCK;
        let blocks = if xs.len() >= 16 {
            xs.data().par_chunks_exact(BLOCK).with_min_len(64).map(quantise).collect()
        } else {
            xs.data().chunks_exact(BLOCK).map(quantise).collect()
        };
        Self { blocks, per_row }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the bytes lie in -127..=127")]
fn quantise(xs: &[f32]) -> Block {
    let mut block = Block {
        high: [[0; 4]; BLOCK / 4],
        low: [[0; 4]; BLOCK / 4],
        scale: 0.0,
        sum: 0,
        total: 0.0,
    };
    // Bit patterns of magnitudes order like the magnitudes, with NaN above infinity, so that a
    // value that is no number is seen and not lost.
    let top = f32::from_bits(xs.iter().fold(0, |m, x| m.max(x.to_bits() & 0x7fff_ffff)));
    if !top.is_finite() {
        return Block { scale: f32::NAN, total: f32::NAN, ..block };
    }
    let scale = top / LARGEST;
    // A subnormal scale has no finite reciprocal; such a block is zero at any useful precision.
    if scale < f32::MIN_POSITIVE {
        return block;
    }
    let inverse = 1.0 / scale;
    for (i, xs) in xs.chunks_exact(4).enumerate() {
        for (j, &x) in xs.iter().enumerate() {
            let integer = round(x * inverse);
            // 255 is odd, so no quotient lies halfway and the nearest high byte is certain.
            let high = round(integer as f32 * (1.0 / BASE as f32));
            block.high[i][j] = high as i8;
            block.low[i][j] = (integer - BASE * high) as i8;
            block.sum += integer;
        }
    }
    block.scale = scale;
    block.total = scale * block.sum as f32;
    block
}

/// The nearest integer, ties to even, of a magnitude below 2^22.
#[expect(clippy::cast_possible_wrap, reason = "bit patterns are taken apart")]
fn round(x: f32) -> i32 {
    /// 1.5 * 2^23: adding it leaves the nearest integer in the low bits.
    const SHIFT: f32 = 12_582_912.0;
    (x + SHIFT).to_bits() as i32 - SHIFT.to_bits() as i32
}
