//! The kernels as functions: `tests/gpu/emulator/entry.cpp`.
#![expect(unsafe_code, reason = "calls of the emulator, which is C++")]

use greenmark::sample::kernel::{Batch, Entry, HistoryShape, Row, RowResult};
use greenmark::token::TokenId;

unsafe extern "C" {
    fn gm_emulated_sample(
        logits: *const f32,
        rows: *const Row,
        entries: *const Entry,
        bits: *const u32,
        count: u32,
        vocab: u32,
        stride: u32,
        results: *mut RowResult,
        workers: u32,
        order_seed: u64,
    ) -> i32;
    fn gm_emulated_begin(words: *mut u32, ids: *const u32, count: u32, window: u32, vocab: u32);
    fn gm_emulated_layout(out: *mut usize);
    fn gm_emulated_exp(x: f64) -> f64;
    fn gm_emulated_ln(x: f64) -> f64;
    fn gm_emulated_neg_ln_uniform(bits: u64) -> f64;
    fn gm_emulated_mass(difference: f32) -> u64;
    fn gm_emulated_surprisal_mass(difference: f32, mass: u64) -> u64;
    fn gm_emulated_rank_key(value: f32) -> u32;
    fn gm_emulated_wide_to_double(high: u64, low: u64) -> f64;
}

/// How the blocks of a launch are run; nothing may depend on it.
#[derive(Clone, Copy)]
pub(crate) struct Schedule {
    pub(crate) workers: u32,
    pub(crate) seed: u64,
}

pub(crate) const IN_ORDER: Schedule = Schedule { workers: 1, seed: 0 };

/// Runs the rows of `batch` over their logits, one row behind the other, `stride` apart.
pub(crate) fn sample(
    batch: &Batch,
    logits: &[f32],
    vocab: usize,
    stride: usize,
    schedule: Schedule,
) -> Vec<RowResult> {
    let count = batch.rows().len();
    assert!(stride >= vocab && logits.len() >= (count - 1) * stride + vocab);
    let mut results = vec![RowResult::default(); count];
    // SAFETY: the rows refer to entries and bits of their own batch, the logits were measured
    // above, and a result is written for each row.
    let left = unsafe {
        gm_emulated_sample(
            logits.as_ptr(),
            batch.rows().as_ptr(),
            batch.entries().as_ptr(),
            batch.bits().as_ptr(),
            count as u32,
            vocab as u32,
            stride as u32,
            results.as_mut_ptr(),
            schedule.workers,
            schedule.seed,
        )
    };
    assert_eq!(left, 0, "the scratch memory was not left clean");
    results
}

/// The device's history of a request, as the emulator keeps it.
pub(crate) struct DeviceHistory(Vec<u32>);

impl DeviceHistory {
    pub(crate) fn new(shape: HistoryShape, prompt: &[TokenId], vocab: usize) -> Self {
        let mut words = vec![0u32; shape.words()];
        let window = shape.window().unwrap_or(0);
        // SAFETY: `words` has the room that the shape says, and all ids are below `vocab`.
        unsafe {
            gm_emulated_begin(
                words.as_mut_ptr(),
                prompt.as_ptr(),
                prompt.len() as u32,
                window as u32,
                vocab as u32,
            );
        }
        Self(words)
    }

    pub(crate) fn address(&mut self) -> u64 {
        self.0.as_mut_ptr() as u64
    }

    pub(crate) fn words(&self) -> &[u32] {
        &self.0
    }
}

pub(crate) fn layout() -> [usize; 19] {
    let mut out = [0; 19];
    // SAFETY: as many numbers are written as there is room for.
    unsafe { gm_emulated_layout(out.as_mut_ptr()) };
    out
}

// SAFETY (of all below): functions of numbers alone.
pub(crate) fn exp(x: f64) -> f64 {
    // SAFETY: as above.
    unsafe { gm_emulated_exp(x) }
}
pub(crate) fn ln(x: f64) -> f64 {
    // SAFETY: as above.
    unsafe { gm_emulated_ln(x) }
}
pub(crate) fn neg_ln_uniform(bits: u64) -> f64 {
    // SAFETY: as above.
    unsafe { gm_emulated_neg_ln_uniform(bits) }
}
pub(crate) fn mass(difference: f32) -> u64 {
    // SAFETY: as above.
    unsafe { gm_emulated_mass(difference) }
}
pub(crate) fn surprisal_mass(difference: f32, mass: u64) -> u64 {
    // SAFETY: as above.
    unsafe { gm_emulated_surprisal_mass(difference, mass) }
}
pub(crate) fn rank_key(value: f32) -> u32 {
    // SAFETY: as above.
    unsafe { gm_emulated_rank_key(value) }
}
pub(crate) fn wide_to_double(wide: u128) -> f64 {
    // SAFETY: as above.
    unsafe { gm_emulated_wide_to_double((wide >> 64) as u64, wide as u64) }
}
