//! Linear layers on the CPU: the work is cut into groups of 16 output columns.
//!
//! A group's result depends on nothing but its weights and the row, so any cut over threads
//! gives the same bits. Layers that read the same rows run in one parallel pass.

use rayon::prelude::*;

use super::blocks::{BlockKind, Blocks};
use super::dense::Dense;
use super::foreign::Foreign;
use super::isa::Isa;
use super::lanes::LANES;
use super::quantised::Quantised;
use super::rows::Rows;
use crate::engine::linear::{Activations, Linear, Storage};
use crate::error::{Error, Result};

/// Multiply-adds below which a task is not worth handing to another thread.
const TASK: usize = 1 << 16;

/// Rows that are multiplied by a few groups in turn before the next ones.
const ROWS: usize = 64;

/// A layer that can be cut into groups of 16 output columns.
pub trait Parts: Send + Sync {
    /// Number of groups.
    fn groups(&self) -> usize;

    /// Prepares what [`Parts::group`] reads; called once before the parallel pass.
    fn prepare(&self, xs: &Activations<'_>);

    /// Computes group `index` for the rows from `first` on: `out[row - first][lane]`.
    fn group(&self, index: usize, xs: &Activations<'_>, first: usize, out: &mut [[f32; 16]]);
}

#[derive(Debug)]
struct Cut<W> {
    weights: W,
    isa: Isa,
}

impl Parts for Cut<Blocks> {
    fn groups(&self) -> usize {
        self.weights.columns().div_ceil(LANES)
    }

    fn prepare(&self, xs: &Activations<'_>) {
        let _: &Quantised = xs.quantised();
    }

    fn group(&self, index: usize, xs: &Activations<'_>, first: usize, out: &mut [[f32; 16]]) {
        let xs = xs.quantised();
        self.weights.multiply(self.isa, index, &xs.blocks[first * xs.per_row..], out);
    }
}

impl Parts for Cut<Dense> {
    fn groups(&self) -> usize {
        self.weights.columns().div_ceil(LANES)
    }

    fn prepare(&self, _xs: &Activations<'_>) {}

    fn group(&self, index: usize, xs: &Activations<'_>, first: usize, out: &mut [[f32; 16]]) {
        let rows = &xs.rows().data()[first * xs.rows().width()..];
        self.weights.multiply(self.isa, index, rows, out);
    }
}

impl Linear for Cut<Blocks> {
    fn in_features(&self) -> usize {
        self.weights.inputs()
    }

    fn out_features(&self) -> usize {
        self.weights.columns()
    }

    fn forward(&self, xs: &Activations<'_>) -> Result<Rows> {
        only(apply(&[self], xs)?)
    }

    fn weight_row(&self, index: usize, out: &mut [f32]) -> Result<()> {
        self.weights.column(index, out);
        Ok(())
    }

    fn parts(&self) -> Option<&dyn Parts> {
        Some(self)
    }
}

impl Linear for Cut<Dense> {
    fn in_features(&self) -> usize {
        self.weights.inputs()
    }

    fn out_features(&self) -> usize {
        self.weights.columns()
    }

    fn forward(&self, xs: &Activations<'_>) -> Result<Rows> {
        only(apply(&[self], xs)?)
    }

    fn weight_row(&self, index: usize, out: &mut [f32]) -> Result<()> {
        self.weights.column(index, out);
        Ok(())
    }

    fn parts(&self) -> Option<&dyn Parts> {
        Some(self)
    }
}

impl Linear for Foreign {
    fn in_features(&self) -> usize {
        self.inputs()
    }

    fn out_features(&self) -> usize {
        self.columns()
    }

    fn forward(&self, xs: &Activations<'_>) -> Result<Rows> {
        Foreign::forward(self, xs.rows())
    }

    fn weight_row(&self, index: usize, out: &mut [f32]) -> Result<()> {
        self.column(index, out)
    }
}

fn only(mut results: Vec<Rows>) -> Result<Rows> {
    results.pop().ok_or_else(|| Error::backend("a linear layer", "no result"))
}

/// Makes a linear layer of `columns` output features from the row-major bytes of a file.
///
/// # Errors
/// [`Error::Parameter`] if `bytes` is not what the storage and the shape ask for.
pub fn linear(
    isa: Isa,
    storage: Storage,
    columns: usize,
    inputs: usize,
    bytes: &[u8],
) -> Result<Box<dyn Linear>> {
    let expected = storage.bytes(columns, inputs);
    if expected != Some(bytes.len()) {
        return Err(Error::parameter(
            "weight",
            format!("{} bytes of {storage:?} for {columns} x {inputs}", bytes.len()),
            expected.map_or_else(
                || format!("rows that are a multiple of {} values", storage.layout().0),
                |n| format!("{n} bytes"),
            ),
        ));
    }
    let blocks = |kind: BlockKind| -> Box<dyn Linear> {
        Box::new(Cut { weights: Blocks::new(kind, columns, inputs, bytes), isa })
    };
    let dense = |weights: Dense| -> Box<dyn Linear> { Box::new(Cut { weights, isa }) };
    Ok(match storage {
        Storage::F32 => dense(Dense::from_f32(columns, inputs, bytes)),
        Storage::F16 => dense(Dense::from_f16(columns, inputs, bytes)),
        Storage::Bf16 => dense(Dense::from_bf16(columns, inputs, bytes)),
        Storage::Blocks(kind) => blocks(kind),
        Storage::Candle(dtype) => Box::new(Foreign::new(dtype, columns, inputs, bytes)?),
    })
}

/// Applies several layers to the same rows, in one parallel pass where they can be cut.
///
/// # Errors
/// [`Error::Parameter`] if the rows' width is not a layer's `in_features`; what the layers say.
pub fn apply(layers: &[&dyn Linear], xs: &Activations<'_>) -> Result<Vec<Rows>> {
    let rows = xs.rows().len();
    let width = xs.rows().width();
    if let Some(layer) = layers.iter().find(|layer| layer.in_features() != width) {
        return Err(Error::parameter(
            "activations",
            format!("rows of {width}"),
            format!("rows of {}", layer.in_features()),
        ));
    }
    if rows == 0 {
        return Ok(layers.iter().map(|layer| Rows::zeros(0, layer.out_features())).collect());
    }
    let Some(parts) = layers.iter().map(|layer| layer.parts()).collect::<Option<Vec<_>>>() else {
        return layers.iter().map(|layer| layer.forward(xs)).collect();
    };
    for part in &parts {
        part.prepare(xs);
    }
    let mut tiles: Vec<Vec<[f32; LANES]>> =
        parts.iter().map(|part| vec![[0.0; LANES]; part.groups() * rows]).collect();
    // A task is a few neighbouring groups, so that each is worth the hand-over and a block of
    // rows is used several times while it is in the cache.
    let step = TASK.div_ceil((rows * width * LANES).max(1)).max(if rows > ROWS { 4 } else { 1 });
    let mut tasks: Vec<(&dyn Parts, usize, &mut [[f32; LANES]])> = Vec::new();
    for (part, tile) in parts.iter().zip(&mut tiles) {
        for (i, chunk) in tile.chunks_mut(step * rows).enumerate() {
            tasks.push((*part, i * step, chunk));
        }
    }
    let run = |(part, first, chunk): (&dyn Parts, usize, &mut [[f32; LANES]])| {
        for start in (0..rows).step_by(ROWS) {
            let end = rows.min(start + ROWS);
            for (i, out) in chunk.chunks_exact_mut(rows).enumerate() {
                part.group(first + i, xs, start, &mut out[start..end]);
            }
        }
    };
    if tasks.len() == 1 || rayon::current_num_threads() == 1 {
        tasks.into_iter().for_each(run);
    } else {
        tasks.into_par_iter().for_each(run);
    }
    Ok(layers
        .iter()
        .zip(tiles)
        .map(|(layer, tile)| rows_of(&tile, rows, layer.out_features()))
        .collect())
}

/// Turns `[group][row][lane]` into rows.
fn rows_of(tile: &[[f32; LANES]], rows: usize, columns: usize) -> Rows {
    let mut out = Rows::zeros(rows, columns);
    let write = |(row, out): (usize, &mut [f32])| {
        for (group, out) in out.chunks_mut(LANES).enumerate() {
            out.copy_from_slice(&tile[group * rows + row][..out.len()]);
        }
    };
    if rows >= 16 {
        out.data_mut().par_chunks_exact_mut(columns).enumerate().for_each(write);
    } else {
        out.data_mut().chunks_exact_mut(columns).enumerate().for_each(write);
    }
    out
}
