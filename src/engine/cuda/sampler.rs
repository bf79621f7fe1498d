//! Draws tokens on the device: launches the kernels of `kernels/sampler.cuh` over the logits that
//! the model left there.
//!
//! What the kernels are told and what they answer is [`crate::sample::kernel`]'s; this moves the
//! bytes. A step costs one copy to the device, two launches, and one copy back of about a hundred
//! bytes a row.
#![expect(unsafe_code, reason = "kernel launches, and rows as the bytes that are copied")]

use std::sync::Arc;

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::driver::{
    CudaFunction, CudaSlice, CudaStream, DevicePtr, LaunchConfig, PushKernelArg,
};
use candle_core::cuda_backend::{CudaDevice, WrapErr};
use candle_core::{Device, Error, Result, Storage, Tensor};

use super::failed;
use super::launch::small;
use crate::error::Result as OurResult;
use crate::sample::kernel::{
    BEST_BYTES, Batch, CHUNK, HISTOGRAM, HistoryShape, LIST, LISTED_BYTES, Row, RowResult,
    STATE_BYTES,
};
use crate::token::TokenId;

/// Made from `sampler.cuh` by `tools/gpu-ptx`.
const PTX: &str = include_str!("../kernels/sampler.ptx");

const BLOCK: u32 = 256;

/// Draws from logits that lie on a CUDA device, for one vocabulary.
#[derive(Debug)]
pub struct DeviceSampler {
    device: CudaDevice,
    stream: Arc<CudaStream>,
    scan: CudaFunction,
    weigh: CudaFunction,
    begin: CudaFunction,
    vocab: usize,
    scratch: Option<Scratch>,
}

/// Rows that were copied to the device.
#[derive(Debug)]
pub struct PreparedRows {
    stream: Arc<CudaStream>,
    count: usize,
    vocab: usize,
    /// Of the histories that they name.
    addresses: Vec<u64>,
    bytes: CudaSlice<u8>,
    offsets: [usize; 3],
}

/// The tokens that a request has had, counted on the device.
#[derive(Debug)]
pub struct DeviceHistory {
    stream: Arc<CudaStream>,
    vocab: usize,
    #[expect(dead_code, reason = "held so that the memory at the address lives")]
    words: CudaSlice<u32>,
    address: u64,
}

impl DeviceHistory {
    /// Where the kernels find it, for [`Batch::push`].
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }
}

/// Memory of the kernels, for so many rows.
#[derive(Debug)]
struct Scratch {
    rows: usize,
    states: CudaSlice<u8>,
    histograms: CudaSlice<u32>,
    best: CudaSlice<u8>,
    lists: CudaSlice<u8>,
    dense: CudaSlice<f32>,
    results: CudaSlice<u8>,
    /// Rows of the last launch.
    launched: usize,
}

impl DeviceSampler {
    /// The sampler for logits of `vocab` ids on `device`, which is a model's
    /// ([`Model::device`](crate::engine::Model::device)) or was opened by
    /// [`DeviceChoice`](crate::engine::DeviceChoice): all work on such a device is on one stream.
    ///
    /// # Errors
    /// [`Error::Backend`](crate::Error::Backend) when `device` is none of these or does not take the kernels.
    pub fn new(device: &Device, vocab: usize) -> OurResult<Self> {
        Self::load(device, vocab).map_err(failed("loading the sampler"))
    }

    fn load(device: &Device, vocab: usize) -> Result<Self> {
        let device = device.as_cuda_device()?.clone();
        // candle's own devices have a stream per thread, and nothing orders those: a history could
        // be freed under a kernel.
        if device.is_event_tracking() {
            return Err(Error::msg("not a device of one stream, as DeviceChoice opens them"));
        }
        let load = |name: &str| {
            let kernel = device.get_or_load_custom_func(name, "greenmark_sampler", PTX)?;
            Ok::<_, Error>(kernel.into_cuda_function())
        };
        Ok(Self {
            scan: load("gm_scan")?,
            weigh: load("gm_weigh")?,
            begin: load("gm_begin")?,
            stream: device.cuda_stream(),
            vocab,
            scratch: None,
            device,
        })
    }

    /// Counts a prompt on the device.
    ///
    /// # Errors
    /// [`Error::Unavailable`](crate::Error::Unavailable) when the device has no memory for it.
    pub fn history(&self, shape: HistoryShape, prompt: &[TokenId]) -> OurResult<DeviceHistory> {
        self.begin(shape, prompt).map_err(failed("counting a prompt"))
    }

    fn begin(&self, shape: HistoryShape, prompt: &[TokenId]) -> Result<DeviceHistory> {
        if shape.vocab() != self.vocab || prompt.iter().any(|&id| id as usize >= self.vocab) {
            return Err(Error::msg("the prompt is not of this model's vocabulary"));
        }
        let vocab = self.vocab;
        let stream = Arc::clone(&self.stream);
        let words = self.device.alloc_zeros::<u32>(shape.words())?;
        // One stream orders all work on these words, so nothing has to be recorded.
        let (address, _) = words.device_ptr(&self.stream);
        if !prompt.is_empty() {
            let ids = self.device.clone_htod(prompt)?;
            let count = small(prompt.len())?;
            let window = small(shape.window().unwrap_or(0))?;
            let width = small(vocab)?;
            let mut args = self.stream.launch_builder(&self.begin);
            args.arg(&words).arg(&ids).arg(&count).arg(&window).arg(&width);
            // SAFETY: the arguments are the kernel's; `words` has the room that its shape says,
            // `ids` holds `count` ids below `vocab` (checked above).
            unsafe { args.launch(grid(1, 1)) }.w()?;
        } else if let Some(window) = shape.window() {
            // The head of an empty history: the kernel has nothing else to do.
            let mut words = words;
            let head = [small(window)?];
            self.device.memcpy_htod(&head[..], &mut words.slice_mut(0..1))?;
            return Ok(DeviceHistory { stream, vocab, words, address });
        }
        Ok(DeviceHistory { stream, vocab, words, address })
    }

    /// Copies the rows of a batch to the device.
    ///
    /// # Errors
    /// [`Error::Unavailable`](crate::Error::Unavailable) when the device has no memory for them.
    pub fn prepare(&self, batch: &Batch) -> OurResult<PreparedRows> {
        self.pack(batch).map_err(failed("copying rows"))
    }

    fn pack(&self, batch: &Batch) -> Result<PreparedRows> {
        // One copy brings everything: rows, then entries, then bit sets, each 8 bytes aligned.
        let rows = batch.rows();
        let parts = [bytes_of(rows), bytes_of(batch.entries()), bytes_of(batch.bits())];
        let mut packed = Vec::new();
        let mut offsets = [0; 3];
        for (offset, part) in offsets.iter_mut().zip(parts) {
            *offset = packed.len();
            packed.extend_from_slice(part);
            packed.resize(packed.len().next_multiple_of(8), 0);
        }
        // A slice of no bytes has no address; the kernels never read what is not named.
        packed.extend([0; 8]);
        let addresses = rows.iter().map(Row::history_address).filter(|address| *address != 0);
        Ok(PreparedRows {
            stream: Arc::clone(&self.stream),
            count: rows.len(),
            vocab: batch.vocab(),
            addresses: addresses.collect(),
            bytes: self.device.clone_htod(&packed)?,
            offsets,
        })
    }

    /// Draws a token for each row of `rows` from the row of `logits` (rows x vocabulary, f32,
    /// contiguous) in the same place, without waiting for it. `histories` are those that the rows
    /// name by their addresses; the tokens are counted in them.
    ///
    /// # Errors
    /// [`Error::Backend`](crate::Error::Backend) for logits of another shape or type, for logits, rows or histories of
    /// another device, for a history that is not among `histories` or that two rows name, and when
    /// the device fails.
    pub fn launch(
        &mut self,
        logits: &Tensor,
        rows: &PreparedRows,
        histories: &[&DeviceHistory],
    ) -> OurResult<()> {
        self.enqueue(logits, rows, histories).map_err(failed("sampling"))
    }

    fn enqueue(
        &mut self,
        logits: &Tensor,
        rows: &PreparedRows,
        histories: &[&DeviceHistory],
    ) -> Result<()> {
        let (height, width) = logits.dims2()?;
        if height != rows.count || width != self.vocab || rows.vocab != self.vocab {
            return Err(Error::msg(format!(
                "{height} x {width} logits for {} rows of {} ids",
                rows.count, self.vocab
            )));
        }
        if !Arc::ptr_eq(&rows.stream, &self.stream) {
            return Err(Error::msg("the rows are on another device"));
        }
        let ours = |history: &&&DeviceHistory| {
            history.vocab == self.vocab && Arc::ptr_eq(&history.stream, &self.stream)
        };
        let mut known: Vec<u64> =
            histories.iter().filter(ours).map(|history| history.address).collect();
        known.sort_unstable();
        known.dedup();
        for address in &rows.addresses {
            // Each is taken out, so that no two rows count in one history.
            let Some(place) = known.iter().position(|known| known == address) else {
                return Err(Error::msg("a row names a history that is not there, or not its own"));
            };
            known.swap_remove(place);
        }
        if height == 0 {
            return Ok(());
        }
        let (storage, layout) = logits.storage_and_layout();
        let (start, end) =
            layout.contiguous_offsets().ok_or_else(|| Error::msg("logits are not contiguous"))?;
        let Storage::Cuda(storage) = &*storage else {
            return Err(Error::msg("logits are not on a CUDA device"));
        };
        if !Arc::ptr_eq(&storage.device().cuda_stream(), &self.stream) {
            return Err(Error::msg("the logits are on another device"));
        }
        let logits = storage.as_cuda_slice::<f32>()?.slice(start..end);
        let [row_args, entries, bits] = rows.offsets.map(|offset| rows.bytes.slice(offset..));

        let chunks = small(self.vocab.div_ceil(CHUNK))?;
        let launch = grid(chunks, small(height)?);
        let vocab = small(self.vocab)?;
        let stride = vocab;
        if self.scratch.as_ref().is_none_or(|scratch| scratch.rows < height) {
            // The old one goes first, so that both never stand side by side.
            self.scratch = None;
            self.scratch = Some(Scratch::new(&self.device, height, self.vocab)?);
        }
        // Taken out, so that after a failure, which may leave it unclean, a new one is made.
        let Some(mut scratch) = self.scratch.take() else {
            return Err(Error::msg("no scratch memory"));
        };
        let mut args = self.stream.launch_builder(&self.scan);
        args.arg(&logits).arg(&row_args).arg(&entries).arg(&bits);
        args.arg(&mut scratch.states).arg(&mut scratch.histograms).arg(&vocab).arg(&stride);
        // SAFETY: the arguments are the kernel's. `logits` holds rows x vocab numbers, the packed
        // bytes hold the rows and what they refer to by offsets (`Batch` makes both), the scratch
        // memory has room for the rows, and histories that rows name were found above.
        unsafe { args.launch(launch) }.w()?;
        let mut args = self.stream.launch_builder(&self.weigh);
        args.arg(&logits).arg(&row_args).arg(&entries).arg(&bits);
        args.arg(&mut scratch.states).arg(&mut scratch.best).arg(&mut scratch.lists);
        args.arg(&mut scratch.dense).arg(&mut scratch.results).arg(&vocab).arg(&stride);
        // SAFETY: as above; a result is written for each row.
        unsafe { args.launch(launch) }.w()?;
        scratch.launched = height;
        self.scratch = Some(scratch);
        Ok(())
    }

    /// The results of the last launch, of its first `count` rows; waits for it.
    ///
    /// # Errors
    /// [`Error::Backend`](crate::Error::Backend) when there was no launch of so many rows, or it failed.
    pub fn results(&self, count: usize) -> OurResult<Vec<RowResult>> {
        self.fetch(count).map_err(failed("fetching tokens"))
    }

    fn fetch(&self, count: usize) -> Result<Vec<RowResult>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let Some(scratch) = self.scratch.as_ref().filter(|scratch| scratch.launched >= count)
        else {
            return Err(Error::msg(format!("no launch of {count} rows")));
        };
        let mut results = vec![RowResult::default(); count];
        let written = scratch.results.slice(0..size_of_val(results.as_slice()));
        self.stream.memcpy_dtoh(&written, bytes_of_mut(&mut results)).w()?;
        self.stream.synchronize().w()?;
        Ok(results)
    }
}

impl Scratch {
    fn new(device: &CudaDevice, rows: usize, vocab: usize) -> Result<Self> {
        let chunks = vocab.div_ceil(CHUNK);
        Ok(Self {
            rows,
            states: device.alloc_zeros(rows * STATE_BYTES)?,
            histograms: device.alloc_zeros(rows * HISTOGRAM)?,
            best: device.alloc_zeros(rows * chunks * BEST_BYTES)?,
            lists: device.alloc_zeros(rows * LIST * LISTED_BYTES)?,
            dense: device.alloc_zeros(rows * vocab)?,
            results: device.alloc_zeros(rows * size_of::<RowResult>())?,
            launched: 0,
        })
    }
}

/// Plain data that host and device share: no padding, every pattern of bytes is a value.
trait Shared: Copy {}
impl Shared for Row {}
impl Shared for crate::sample::kernel::Entry {}
impl Shared for RowResult {}
impl Shared for u32 {}

fn bytes_of<T: Shared>(values: &[T]) -> &[u8] {
    // SAFETY: the memory of `values`, which has no padding.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

fn bytes_of_mut<T: Shared>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: the memory of `values`, in which every pattern of bytes is a value.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

fn grid(chunks: u32, rows: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (chunks, rows, 1), block_dim: (BLOCK, 1, 1), shared_mem_bytes: 0 }
}
