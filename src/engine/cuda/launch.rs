//! Launches the kernels of `kernels/layers.cuh`; with the driver's version, all that needs
//! `unsafe` on a device.
//!
//! Every function checks the lengths that its kernel relies on, so that no safe caller can make a
//! kernel leave its memory. A scalar argument is a variable of exactly the kernel's type: the
//! driver reads as many bytes as the kernel declares, whatever Rust passes.
#![expect(unsafe_code, reason = "kernel launches, memory they fill, one call of the driver")]

use std::marker::PhantomData;
use std::sync::Arc;

use candle_core::cuda_backend::cudarc::driver::{
    CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg, sys,
};
use candle_core::cuda_backend::{CudaDevice, WrapErr};
use candle_core::{Error, Result};

use super::cache::{PLACE_WORDS, Places};
use super::element::Element;
use crate::engine::cpu::Heads;
use crate::engine::rope::Pairing;

/// Made from `layers.cuh` by `tools/gpu-ptx`.
const PTX: &str = include_str!("../kernels/layers.ptx");

/// Largest block of the kernels, the attention's apart.
const BLOCK: u32 = 256;

/// The attention's block (`TILE` of `layers.cuh`).
const ATTEND_BLOCK: u32 = 128;

/// The kernels for one kind of number, loaded on one device.
pub(super) struct Kernels<T> {
    device: CudaDevice,
    stream: Arc<CudaStream>,
    rms_norm: CudaFunction,
    rotate: CudaFunction,
    silu_mul: CudaFunction,
    add: CudaFunction,
    add_bias: CudaFunction,
    append: CudaFunction,
    attend: CudaFunction,
    element: PhantomData<T>,
}

/// A device with a stream of its own, so that calls from any threads follow each other.
pub(super) fn device_with_own_stream(ordinal: usize) -> Result<CudaDevice> {
    let device = CudaDevice::new_with_stream(ordinal)?;
    // SAFETY: everything that uses the device's memory runs on its one stream, which keeps the
    // order that events would otherwise have to establish.
    unsafe { device.disable_event_tracking() };
    Ok(device)
}

/// The CUDA version that the driver supports: 1000 times the major number plus 10 times the minor.
pub(super) fn driver_version() -> std::result::Result<i32, DriverError> {
    let mut version = 0;
    // SAFETY: the driver writes one int, and needs no initialisation for that.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result()?;
    Ok(version)
}

impl<T: Element> Kernels<T> {
    pub(super) fn load(device: &CudaDevice) -> Result<Self> {
        let load = |name: &str| {
            let name = format!("gm_{name}_{}", T::NAME);
            let kernel = device.get_or_load_custom_func(&name, "greenmark_layers", PTX)?;
            Ok::<_, Error>(kernel.into_cuda_function())
        };
        Ok(Self {
            rms_norm: load("rms_norm")?,
            rotate: load("rotate")?,
            silu_mul: load("silu_mul")?,
            add: load("add")?,
            add_bias: load("add_bias")?,
            append: load("append")?,
            attend: load("attend")?,
            stream: device.cuda_stream(),
            device: device.clone(),
            element: PhantomData,
        })
    }

    pub(super) fn device(&self) -> &CudaDevice {
        &self.device
    }

    /// Normalises every piece of as many elements as `weight` has.
    pub(super) fn rms_norm(
        &self,
        xs: &CudaSlice<T>,
        weight: &CudaSlice<f32>,
        eps: f32,
    ) -> Result<CudaSlice<T>> {
        let width = small(weight.len())?;
        check(width > 0 && xs.len().is_multiple_of(weight.len()), "the width of a norm")?;
        let pieces = small(xs.len() / weight.len())?;
        // SAFETY: the kernel writes every element.
        let mut out = unsafe { self.device.alloc::<T>(xs.len())? };
        let mut args = self.stream.launch_builder(&self.rms_norm);
        args.arg(xs).arg(weight).arg(&mut out).arg(&width).arg(&eps);
        let block = width.next_multiple_of(32).min(BLOCK);
        // SAFETY: the arguments are the kernel's; `xs` and `out` hold `pieces` times `width`
        // elements, `weight` holds `width`.
        unsafe { args.launch(grid(pieces, block)) }.w()?;
        Ok(out)
    }

    /// Rotates the heads of `rows` rows, `half` pairs each. `turns` holds a cosine per row and
    /// pair, then as many sines.
    pub(super) fn rotate(
        &self,
        xs: &mut CudaSlice<T>,
        turns: &CudaSlice<f32>,
        rows: usize,
        half: usize,
        pairing: Pairing,
    ) -> Result<()> {
        if rows == 0 || half == 0 {
            return Ok(());
        }
        check(turns.len() == 2 * rows * half, "the number of angles")?;
        check(xs.len().is_multiple_of(2 * rows * half), "the width of a rotation")?;
        let heads = small(xs.len() / (2 * rows * half))?;
        let pairs = xs.len() / 2;
        let rows = rows as u64;
        let half = small(half)?;
        let neighbours = u32::from(pairing == Pairing::Neighbours);
        let mut args = self.stream.launch_builder(&self.rotate);
        args.arg(xs).arg(turns).arg(&rows).arg(&heads).arg(&half).arg(&neighbours);
        // SAFETY: the arguments are the kernel's; `xs` holds rows x heads x 2 half elements and
        // `turns` 2 x rows x half.
        unsafe { args.launch(per_element(pairs)?) }.w()?;
        Ok(())
    }

    /// `gate = silu(gate) * up`.
    pub(super) fn silu_mul(&self, gate: &mut CudaSlice<T>, up: &CudaSlice<T>) -> Result<()> {
        check(gate.len() == up.len(), "the width of a gate")?;
        let launch = per_element(gate.len())?;
        let count = gate.len() as u64;
        let mut args = self.stream.launch_builder(&self.silu_mul);
        args.arg(gate).arg(up).arg(&count);
        // SAFETY: the arguments are the kernel's; both slices hold `count` elements.
        unsafe { args.launch(launch) }.w()?;
        Ok(())
    }

    /// `xs += ys`.
    pub(super) fn add(&self, xs: &mut CudaSlice<T>, ys: &CudaSlice<T>) -> Result<()> {
        check(xs.len() == ys.len(), "the width of a sum")?;
        let launch = per_element(xs.len())?;
        let count = xs.len() as u64;
        let mut args = self.stream.launch_builder(&self.add);
        args.arg(xs).arg(ys).arg(&count);
        // SAFETY: the arguments are the kernel's; both slices hold `count` elements.
        unsafe { args.launch(launch) }.w()?;
        Ok(())
    }

    /// Adds the bias to every row.
    pub(super) fn add_bias(&self, xs: &mut CudaSlice<T>, bias: &CudaSlice<f32>) -> Result<()> {
        let width = small(bias.len())?;
        check(width > 0 && xs.len().is_multiple_of(bias.len()), "the width of a bias")?;
        let launch = per_element(xs.len())?;
        let count = xs.len() as u64;
        let mut args = self.stream.launch_builder(&self.add_bias);
        args.arg(xs).arg(bias).arg(&count).arg(&width);
        // SAFETY: the arguments are the kernel's; `xs` holds `count` elements, `bias` `width`.
        unsafe { args.launch(launch) }.w()?;
        Ok(())
    }

    /// Writes the keys and values of every row into the cache of its sequence.
    pub(super) fn append(
        &self,
        places: &Places,
        layer: usize,
        heads: Heads,
        keys: &CudaSlice<T>,
        values: &CudaSlice<T>,
    ) -> Result<()> {
        let expected = places.rows() * heads.kv * heads.dim;
        check(keys.len() == expected && values.len() == expected, "the width of keys")?;
        check(places.table().len() == places.rows() * PLACE_WORDS, "the table of places")?;
        let rows = small(places.rows())?;
        let layer = layer as u64;
        let (kv_heads, dim) = (small(heads.kv)?, small(heads.dim)?);
        let mut args = self.stream.launch_builder(&self.append);
        args.arg(keys).arg(values).arg(places.table()).arg(&layer).arg(&kv_heads).arg(&dim);
        // SAFETY: the arguments are the kernel's. The addresses in the table are those of caches
        // which the pass borrows mutably, made for this model's layers and heads, each with room
        // for the positions of its rows (`Model::run` checks both); no two rows share a position
        // of one cache.
        unsafe { args.launch(grid(rows, BLOCK)) }.w()?;
        Ok(())
    }

    /// Attends from every row and head over the cache of the row's sequence, the row included.
    pub(super) fn attend(
        &self,
        places: &Places,
        layer: usize,
        heads: Heads,
        queries: &CudaSlice<T>,
    ) -> Result<CudaSlice<T>> {
        let expected = places.rows() * heads.query * heads.dim;
        check(queries.len() == expected, "the width of queries")?;
        check(places.table().len() == places.rows() * PLACE_WORDS, "the table of places")?;
        check(heads.dim <= super::LARGEST_HEAD, "the size of a head")?;
        let blocks = small(places.rows() * heads.query)?;
        let layer = layer as u64;
        let (query_heads, kv_heads) = (small(heads.query)?, small(heads.kv)?);
        let dim = small(heads.dim)?;
        let window = heads.window.unwrap_or(0) as u64;
        let scale = 1.0 / (heads.dim as f32).sqrt();
        // SAFETY: the kernel writes every element.
        let mut out = unsafe { self.device.alloc::<T>(queries.len())? };
        let mut args = self.stream.launch_builder(&self.attend);
        args.arg(queries).arg(&mut out).arg(places.table()).arg(&layer);
        args.arg(&query_heads).arg(&kv_heads).arg(&dim).arg(&window).arg(&scale);
        // SAFETY: the arguments are the kernel's; it reads the caches as `append` has written
        // them, up to each row's own position.
        unsafe { args.launch(grid(blocks, ATTEND_BLOCK)) }.w()?;
        Ok(out)
    }
}

fn check(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::msg(format!("{what} does not fit the rows"))) }
}

pub(super) fn small(size: usize) -> Result<u32> {
    u32::try_from(size).map_err(|_| Error::msg(format!("{size} is too large for a kernel")))
}

fn grid(blocks: u32, threads: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 }
}

/// One thread per element.
fn per_element(count: usize) -> Result<LaunchConfig> {
    Ok(grid(small(count.div_ceil(BLOCK as usize))?, BLOCK))
}
