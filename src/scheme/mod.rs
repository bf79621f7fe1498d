//! Watermark schemes: what to do at a step of generation, what evidence a text holds, and which
//! input of the PRF each token's evidence depends on.

mod step;

pub use step::{Action, Gate, Membership, Scope, Step, Uniforms};
