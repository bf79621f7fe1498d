//! Weights of 4 or 8 bits in blocks of 32: ggml's `Q4_0`, `Q4_1` and `Q8_0`.
//!
//! They stay quantised. Sixteen output columns are interleaved, four elements at a time, so
//! that a vector lane is a column. For each block, in ascending order,
//!
//! ```text
//! sum += (weight scale * activation scale) * exact integer dot product
//! low += weight minimum * activation total            (Q4_1 only)
//! ```
//!
//! and the result is sum + low. The order depends on the row's length alone.

use half::f16;
use rayon::prelude::*;

use super::isa::{Isa, Level};
use super::lanes::LANES;
use super::quantised::{BASE, BLOCK, Block};

/// How a block stores its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// 4 bits: scale * (q - 8).
    Q4_0,
    /// 4 bits: scale * q + minimum.
    Q4_1,
    /// 8 bits: scale * q.
    Q8_0,
}

impl BlockKind {
    /// Bytes of one block of 32 elements in a model file.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q8_0 => 34,
        }
    }

    /// 64-byte lines of one block of 16 interleaved columns.
    const fn lines(self) -> usize {
        match self {
            Self::Q4_0 | Self::Q4_1 => 4,
            Self::Q8_0 => 8,
        }
    }

    /// What was added to every element to make it an unsigned integer.
    pub(super) const fn offset(self) -> i32 {
        match self {
            Self::Q4_0 => 8,
            Self::Q4_1 => 0,
            Self::Q8_0 => 128,
        }
    }
}

/// Four bytes of each of 16 columns; aligned, so that one load reads one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [[u8; 4]; LANES]);

/// A weight matrix of blocks, columns interleaved by 16.
#[derive(Debug)]
pub(super) struct Blocks {
    kind: BlockKind,
    columns: usize,
    per_column: usize,
    lines: Vec<Line>,
    scales: Vec<[u16; LANES]>,
    /// Empty unless the kind is `Q4_1`.
    minima: Vec<[u16; LANES]>,
}

/// One group of 16 columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group<'a> {
    pub(super) lines: &'a [Line],
    pub(super) scales: &'a [[u16; LANES]],
    pub(super) minima: &'a [[u16; LANES]],
}

impl Blocks {
    /// Interleaves the file's bytes: `columns` output features of `inputs` elements each, and
    /// `bytes` of exactly that length; `inputs` is a multiple of 32.
    pub(super) fn new(kind: BlockKind, columns: usize, inputs: usize, bytes: &[u8]) -> Self {
        let per_column = inputs / BLOCK;
        let groups = columns.div_ceil(LANES);
        let blocks = groups * per_column;
        let mut lines = vec![Line([[0; 4]; LANES]); blocks * kind.lines()];
        let mut scales = vec![[0; LANES]; blocks];
        let mut minima = match kind {
            BlockKind::Q4_1 => vec![[0; LANES]; blocks],
            BlockKind::Q4_0 | BlockKind::Q8_0 => Vec::new(),
        };
        if blocks > 0 {
            let column_bytes = per_column * kind.bytes();
            let mut minima_groups: Vec<&mut [[u16; LANES]]> = if minima.is_empty() {
                (0..groups).map(|_| Default::default()).collect()
            } else {
                minima.chunks_exact_mut(per_column).collect()
            };
            lines
                .par_chunks_exact_mut(per_column * kind.lines())
                .zip(scales.par_chunks_exact_mut(per_column))
                .zip(&mut minima_groups)
                .zip(bytes.par_chunks(column_bytes * LANES))
                .for_each(|(((lines, scales), minima), bytes)| {
                    for (lane, column) in bytes.chunks_exact(column_bytes).enumerate() {
                        for (b, block) in column.chunks_exact(kind.bytes()).enumerate() {
                            let lines = &mut lines[b * kind.lines()..][..kind.lines()];
                            scales[b][lane] = u16::from_le_bytes([block[0], block[1]]);
                            let elements = match kind {
                                BlockKind::Q4_0 | BlockKind::Q8_0 => &block[2..],
                                BlockKind::Q4_1 => {
                                    minima[b][lane] = u16::from_le_bytes([block[2], block[3]]);
                                    &block[4..]
                                }
                            };
                            // Signed bytes become unsigned by adding 128.
                            let flip = if kind == BlockKind::Q8_0 { 0x80 } else { 0 };
                            for (line, four) in lines.iter_mut().zip(elements.chunks_exact(4)) {
                                for (to, &from) in line.0[lane].iter_mut().zip(four) {
                                    *to = from ^ flip;
                                }
                            }
                        }
                    }
                });
        }
        Self { kind, columns, per_column, lines, scales, minima }
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn inputs(&self) -> usize {
        self.per_column * BLOCK
    }

    fn group(&self, index: usize) -> Group<'_> {
        let n = self.per_column;
        Group {
            lines: &self.lines[index * n * self.kind.lines()..][..n * self.kind.lines()],
            scales: &self.scales[index * n..][..n],
            minima: if self.minima.is_empty() { &[] } else { &self.minima[index * n..][..n] },
        }
    }

    /// The products of group `index` with every row of `xs` (`out.len()` rows).
    pub(super) fn multiply(&self, isa: Isa, index: usize, xs: &[Block], out: &mut [[f32; LANES]]) {
        let group = self.group(index);
        match isa.level() {
            Level::Portable => {
                for (row, out) in xs.chunks_exact(self.per_column).zip(out) {
                    *out = portable(self.kind, group, row);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 | Level::Avx512 => {
                super::blocks_x86::multiply(isa, self.kind, group, xs, out);
            }
        }
    }

    /// Writes the elements of one column, dequantised.
    pub(super) fn column(&self, column: usize, out: &mut [f32]) {
        let group = self.group(column / LANES);
        let lane = column % LANES;
        for (b, out) in out.chunks_exact_mut(BLOCK).enumerate() {
            let scale = f16::from_bits(group.scales[b][lane]).to_f32();
            let low = group.minima.get(b).map_or(0.0, |m| f16::from_bits(m[lane]).to_f32());
            let lines = &group.lines[b * self.kind.lines()..][..self.kind.lines()];
            for (i, out) in out.iter_mut().enumerate() {
                let q = element(self.kind, lines, lane, i) - self.kind.offset();
                *out = scale * q as f32 + low;
            }
        }
    }
}

/// The unsigned integer of element `i` of a block.
fn element(kind: BlockKind, lines: &[Line], lane: usize, i: usize) -> i32 {
    match kind {
        BlockKind::Q8_0 => i32::from(lines[i / 4].0[lane][i % 4]),
        // A byte holds element j in its low half and element j + 16 in its high half.
        BlockKind::Q4_0 | BlockKind::Q4_1 => {
            let byte = lines[i % 16 / 4].0[lane][i % 4];
            i32::from(if i < 16 { byte & 15 } else { byte >> 4 })
        }
    }
}

/// The definition that every faster kernel reproduces bit for bit.
fn portable(kind: BlockKind, group: Group<'_>, row: &[Block]) -> [f32; LANES] {
    let mut sums = [0.0f32; LANES];
    let mut lows = [0.0f32; LANES];
    for (b, x) in row.iter().enumerate() {
        let lines = &group.lines[b * kind.lines()..][..kind.lines()];
        for lane in 0..LANES {
            let mut high = 0;
            let mut low = 0;
            for i in 0..BLOCK {
                let weight = element(kind, lines, lane, i);
                high += weight * i32::from(x.high[i / 4][i % 4]);
                low += weight * i32::from(x.low[i / 4][i % 4]);
            }
            let mut dot = BASE * high + low;
            dot -= kind.offset() * x.sum;
            let scale = f16::from_bits(group.scales[b][lane]).to_f32() * x.scale;
            sums[lane] += scale * dot as f32;
            if let Some(minima) = group.minima.get(b) {
                lows[lane] += f16::from_bits(minima[lane]).to_f32() * x.total;
            }
        }
    }
    for (sum, low) in sums.iter_mut().zip(lows) {
        *sum += low;
    }
    sums
}
