//! The chain as the device kernels are told of it: plain data, a row at a time.
//!
//! [`Batch`] turns chains, histories and scheme steps into the rows that
//! `src/engine/kernels/sampler.cuh` computes with, and their answers into [`Outcome`]s
//! that are the chain's own, bit for bit. Nothing here runs on a device or knows of one; the
//! engine moves the bytes, and tests give them to the kernels compiled for the CPU.
//!
//! [`Outcome`]: crate::sample::Outcome

mod batch;
mod form;
mod row;

pub use batch::{Batch, HistoryShape};
pub(crate) use form::Form;
pub(crate) use row::StageKind;
pub use row::{
    BEST_BYTES, CHUNK, Edit, Entry, HISTOGRAM, LIST, LISTED_BYTES, Path, Row, RowResult,
    STATE_BYTES, Stage, layout,
};
