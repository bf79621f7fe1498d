//! The service as its clients meet it: a real process behind a real socket.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "a test fails by panicking; its numbers are small and exact"
)]

mod access;
mod audit;
mod batch;
mod bodies;
mod client;
mod config;
mod cors;
mod detect;
#[cfg(feature = "engine")]
mod entropy;
mod file;
#[cfg(feature = "engine")]
mod generation;
#[cfg(feature = "engine")]
mod generation_bodies;
#[cfg(feature = "engine")]
mod generation_enforce;
#[cfg(feature = "engine")]
mod generation_queue;
mod limits;
mod metrics;
mod moderations;
mod openapi;
mod page;
mod roles;
mod service;
mod shutdown;
mod signed;
mod spine;
#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "the command line's tests use the rest")]
mod support;
