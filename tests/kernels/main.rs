//! The device kernels, compiled for the CPU by the emulator of `tests/gpu`, against the chain:
//! every token, count and log-probability has the chain's own bits.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "a test fails by panicking; its numbers are small and exact"
)]

mod emulator;
mod faults;
mod history;
mod invariance;
mod kinds;
mod math;
mod paths;
mod random;
mod request;
