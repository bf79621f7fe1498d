//! Causal attention of each sequence over its own cache.
//!
//! The key cache of a head holds blocks of 16 positions, interleaved so that a vector lane is a
//! position; values lie position after position. For one query, scores are sums over the head's
//! dimensions in ascending order, the softmax sums by position modulo 16 and then in a fixed
//! tree, and the values are added in ascending position. So a row's result depends on its own
//! position and its own cache, and on no other row.

use rayon::prelude::*;

use super::isa::Isa;
use super::kernels;
use super::lanes::LANES;
use super::rows::Rows;
use super::store::Store;
use crate::engine::batch::Span;

/// Rows of a sequence that one task takes.
const TASK_ROWS: usize = 16;

/// Positions whose values are added to all queries of a task before the next ones are read.
const VALUE_BLOCK: usize = 64;

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
#[derive(Debug)]
pub(in crate::engine) struct LayerCache {
    /// `[kv head][position / 16][dim][position % 16]`.
    keys: Store,
    /// `[kv head][position][dim]`.
    values: Store,
    /// Positions there is room for: a multiple of 16.
    capacity: usize,
}

impl LayerCache {
    /// Room for `capacity` positions, rounded up to 16, in f16 if `half`. The operating system
    /// gives the memory page by page as positions are written.
    pub(in crate::engine) fn new(half: bool, heads: usize, dim: usize, capacity: usize) -> Self {
        let capacity = capacity.next_multiple_of(LANES);
        let len = heads * capacity * dim;
        Self { keys: Store::new(half, len), values: Store::new(half, len), capacity }
    }

    fn write(&mut self, heads: Heads, position: usize, key: &[f32], value: &[f32]) {
        let dim = heads.dim;
        for head in 0..heads.kv {
            let first = head * self.capacity;
            let block = (first + position / LANES * LANES) * dim;
            self.keys.write(block + position % LANES, LANES, &key[head * dim..][..dim]);
            self.values.write((first + position) * dim, 1, &value[head * dim..][..dim]);
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
        let head = self.head * cache.capacity;
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
            let start = (head + (from_block + block) * LANES) * dim;
            cache.keys.score(isa, start, dim, &packed, &mut tile);
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
        for start in (from_block * LANES..=last).step_by(VALUE_BLOCK) {
            let end = (start + VALUE_BLOCK).min(last + 1);
            for i in 0..self.rows {
                let position = self.position + i;
                let low = first(position).max(start);
                let high = (position + 1).min(end);
                if low >= high {
                    continue;
                }
                let scores = scores[i * group * count * LANES..].chunks_exact(count * LANES);
                let offset = from_block * LANES;
                let weights = scores.map(|scores| &scores[low - offset..high - offset]);
                let out = &mut out[i * group * dim..][..group * dim];
                cache.values.mix(isa, (head + low) * dim, dim, weights, out);
            }
        }
    }
}
