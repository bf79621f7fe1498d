//! Tests on a CUDA device: a real one, or the mock driver of `tests/gpu/mock`, which runs the
//! kernels on the CPU. They fail where there is neither.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

#[path = "../engine/fixtures.rs"]
#[allow(dead_code, reason = "the tests of the engine use the rest")]
mod fixtures;
#[path = "../support/mod.rs"]
mod support;

mod device;
mod draw;
mod driver;
mod fixed;
mod forward;
mod program;
mod sampler;
mod session;
