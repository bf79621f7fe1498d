//! The sampling chain: its arithmetic, its members against published values and other systems'
//! vectors, and the draw.

#![expect(clippy::float_cmp, reason = "infinities, bits that must agree and values that are exact")]

mod cases;
mod chain;
mod draw;
mod golden;
mod literature;
mod math;
mod properties;
mod reference;
mod registry;
mod samplers;
mod support;
mod uniform;
mod vectors;
