//! Tests of `greenmark::engine` through its public interface.

#[path = "../support/mod.rs"]
mod support;

mod bits;
mod checkpoints;
mod fixtures;
mod linear;
mod real_model;
mod refused;
