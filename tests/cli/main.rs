//! The program as a user meets it: arguments, exit codes, standard output and standard error.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "a test fails by panicking; its numbers are small and exact"
)]

mod apikey;
mod batch;
mod calibrate;
#[cfg(feature = "engine")]
mod curve;
mod detect;
#[cfg(feature = "engine")]
mod device;
mod doctor;
#[cfg(feature = "engine")]
mod entropy;
mod extract;
#[cfg(feature = "engine")]
mod generate;
mod inspect;
mod keep;
mod keys;
#[cfg(feature = "engine")]
#[path = "../support/mod.rs"]
mod model;
mod reading;
#[cfg(feature = "engine")]
mod sidecar;
mod streams;
mod support;
mod tail;
mod verify;
mod windows;
