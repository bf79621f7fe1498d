//! Scoring, deduplication, verdicts and the report.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "a test fails by panicking; its numbers are small and exact"
)]

mod calibrate;
mod profile;
mod report;
mod scoring;
