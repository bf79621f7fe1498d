//! Tails, intervals and tests of uniformity against closed forms and independent values.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "a test fails by panicking; its numbers are small and exact"
)]

mod golden;
mod interval;
mod multiple;
mod randomised;
mod tails;
mod uniformity;
mod weighted;

pub(crate) fn close(actual: f64, expected: f64, relative: f64) {
    assert!(
        (actual - expected).abs() <= relative * expected.abs(),
        "{actual:e} is not {expected:e} within {relative:e}"
    );
}
