//! Scoring, deduplication, verdicts and the report.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "a test fails by panicking; its numbers are small and exact"
)]

#[path = "../support/mod.rs"]
mod support;

mod attack;
mod calibrate;
mod calibration;
mod entropy;
mod join;
mod page;
mod profile;
mod report;
mod scoring;
mod sentences;
mod simulate;
mod windows_null;
mod windows_pasted;
mod windows_power;
mod windows_report;
mod windows_search;
