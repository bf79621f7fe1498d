//! Tests of `greenmark::engine` through its public interface.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

#[path = "../support/mod.rs"]
mod support;

mod bits;
mod checkpoints;
mod fixtures;
mod forcing;
mod linear;
mod marked_text;
#[cfg(feature = "oracle")]
mod oracle;
mod placement;
mod real_model;
mod refused;
mod session;
