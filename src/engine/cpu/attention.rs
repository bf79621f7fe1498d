//! Causal attention of each sequence over its own cache.
//!
//! The key cache of a head holds blocks of 16 positions, interleaved so that a vector lane is a
//! position; values lie position after position. For one query, scores are sums over the head's
//! dimensions in ascending order, the softmax sums by position modulo 16 and then in a fixed
//! tree, and the values are added in ascending position. So a row's result depends on its own
//! position and its own cache, and on no other row.

use rayon::prelude::*;

use super::aligned::Aligned;
use super::isa::Isa;
use super::kernels::{self, LANES};
use super::rows::Rows;
use crate::engine::batch::Span;

/// Rows of a sequence that one task takes.
const TASK_ROWS: usize = 16;

/// The heads of an attention layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::engine) struct Heads {
    /// Query heads; a multiple of `kv`.
    pub(in crate::engine) query: usize,
    /// Key and value heads.
    pub(in crate::engine) kv: usize,
    /// Elements of a head.
    pub(in crate::engine) dim: usize,
    /// Number of latest positions a query sees, its own included; `None`: all.
    pub(in crate::engine) window: Option<usize>,
}

/// Keys and values of one layer and one sequence.
#[derive(Debug, Default)]
pub(in crate::engine) struct LayerCache {
    /// `[kv head][position / 16][dim][position % 16]`.
    keys: Aligned<f32>,
    /// `[kv head][position][dim]`.
    values: Aligned<f32>,
    /// Positions there is room for: a multiple of 16.
    capacity: usize,
}

impl LayerCache {
    /// Room for `capacity` positions, rounded up to 16. The operating system gives the memory
    /// page by page as positions are written.
    pub(in crate::engine) fn new(heads: usize, dim: usize, capacity: usize) -> Self {
        let capacity = capacity.next_multiple_of(LANES);
        Self {
            keys: Aligned::new(0.0, heads * capacity * dim),
            values: Aligned::new(0.0, heads * capacity * dim),
            capacity,
        }
    }

    fn write(&mut self, heads: Heads, position: usize, key: &[f32], value: &[f32]) {
        let dim = heads.dim;
        let blocks = self.capacity / LANES;
        let (keys, _) = self.keys.as_mut_slice().as_chunks_mut::<LANES>();
        for head in 0..heads.kv {
            let block = &mut keys[(head * blocks + position / LANES) * dim..][..dim];
            for (slot, &k) in block.iter_mut().zip(&key[head * dim..][..dim]) {
                slot[position % LANES] = k;
            }
            self.values.as_mut_slice()[(head * self.capacity + position) * dim..][..dim]
                .copy_from_slice(&value[head * dim..][..dim]);
        }
    }
}

/// Writes the new keys and values of every sequence, then attends.
///
/// `queries` is rows x (query heads * dim), `keys` and `values` rows x (kv heads * dim), all
/// after rotation. The result has the shape of `queries`.
pub(super) fn attention(
    isa: Isa,
    heads: Heads,
    spans: &[Span],
    caches: &mut [&mut LayerCache],
    queries: &Rows,
    keys: &Rows,
    values: &Rows,
) -> Rows {
    for (span, cache) in spans.iter().zip(caches.iter_mut()) {
        for i in 0..span.rows {
            let row = span.first_row + i;
            cache.write(heads, span.position + i, keys.row(row), values.row(row));
        }
    }
    let group = heads.query / heads.kv;
    // One task is a few rows of one sequence and the query heads that share a kv head.
    let mut result = vec![0.0f32; queries.data().len()];
    let mut rest = result.as_mut_slice();
    let mut tasks = Vec::new();
    let mut work = 0;
    for (span, cache) in spans.iter().zip(caches.iter()) {
        for start in (0..span.rows).step_by(TASK_ROWS) {
            let rows = TASK_ROWS.min(span.rows - start);
            for head in 0..heads.kv {
                let (out, tail) = rest.split_at_mut(rows * group * heads.dim);
                rest = tail;
                let task = Task {
                    head,
                    first_row: span.first_row + start,
                    position: span.position + start,
                    rows,
                };
                work += rows * group * heads.dim * (task.position + rows);
                tasks.push((task, &**cache, out));
            }
        }
    }
    let places: Vec<Task> = tasks.iter().map(|(task, ..)| *task).collect();
    let run = |(task, cache, out): (Task, &LayerCache, &mut [f32])| {
        task.run(isa, heads, cache, queries, out);
    };
    // Small work is not worth a hand-over; neither way changes a bit.
    if work < 1 << 17 || tasks.len() == 1 || rayon::current_num_threads() == 1 {
        tasks.into_iter().for_each(run);
    } else {
        tasks.into_par_iter().for_each(run);
    }
    let mut out = Rows::zeros(queries.len(), queries.width());
    let mut rest = result.as_slice();
    let width = group * heads.dim;
    for task in places {
        let (block, tail) = rest.split_at(task.rows * width);
        rest = tail;
        for (i, block) in block.chunks_exact(width).enumerate() {
            let start = (task.first_row + i) * queries.width() + task.head * width;
            out.data_mut()[start..][..width].copy_from_slice(block);
        }
    }
    out
}

#[derive(Clone, Copy, Debug)]
struct Task {
    head: usize,
    first_row: usize,
    position: usize,
    rows: usize,
}

impl Task {
    /// `out` is `[row][query head of the group][dim]`, zero at the start.
    fn run(self, isa: Isa, heads: Heads, cache: &LayerCache, queries: &Rows, out: &mut [f32]) {
        let dim = heads.dim;
        let group = heads.query / heads.kv;
        let blocks = cache.capacity / LANES;
        let (keys, _) = cache.keys.as_slice().as_chunks::<LANES>();
        let keys = &keys[self.head * blocks * dim..][..blocks * dim];
        let values =
            &cache.values.as_slice()[self.head * cache.capacity * dim..][..cache.capacity * dim];
        let scale = 1.0 / (dim as f32).sqrt();
        let first = |position: usize| {
            heads.window.map_or(0, |window| (position + 1).saturating_sub(window))
        };
        let last = self.position + self.rows - 1;
        let from_block = first(self.position) / LANES;
        let count = last / LANES + 1 - from_block;
        // The queries of the task, one after the other, as the score kernel reads them.
        let mut packed = Vec::with_capacity(self.rows * group * dim);
        for i in 0..self.rows {
            let row = queries.row(self.first_row + i);
            packed.extend_from_slice(&row[self.head * group * dim..][..group * dim]);
        }
        let all = self.rows * group;
        let mut tile = vec![[0.0f32; LANES]; all];
        // `[query][position - first block's first position]`
        let mut scores = vec![0.0f32; all * count * LANES];
        for block in 0..count {
            let keys = &keys[(from_block + block) * dim..][..dim];
            kernels::group_f32(isa, keys, &packed, dim, &mut tile);
            for (query, tile) in tile.iter().enumerate() {
                scores[(query * count + block) * LANES..][..LANES].copy_from_slice(tile);
            }
        }
        for (query, scores) in scores.chunks_exact_mut(count * LANES).enumerate() {
            let position = self.position + query / group;
            let low = first(position) - from_block * LANES;
            let high = position + 1 - from_block * LANES;
            kernels::softmax(isa, &mut scores[low..high], scale);
        }
        // Three queries read each value once where they see the same positions, as the heads
        // of one row do.
        for i in 0..self.rows {
            let position = self.position + i;
            let low = first(position) - from_block * LANES;
            let high = position + 1 - from_block * LANES;
            let values = &values[first(position) * dim..];
            let weights = |h: usize| &scores[(i * group + h) * count * LANES..][low..high];
            let mut h = 0;
            let mut outs = out[i * group * dim..][..group * dim].chunks_exact_mut(dim);
            while h < group {
                if group - h >= 3
                    && let (Some(a), Some(b), Some(c)) = (outs.next(), outs.next(), outs.next())
                {
                    let weights = [weights(h), weights(h + 1), weights(h + 2)];
                    kernels::mix3(isa, weights, values, dim, [a, b, c]);
                    h += 3;
                } else if let Some(out) = outs.next() {
                    kernels::mix(isa, weights(h), values, dim, out);
                    h += 1;
                } else {
                    break;
                }
            }
        }
    }
}
