//! Runs causal language models: from a model file to logits.
//!
//! [`Model`] loads a GGUF file or a safetensors folder and turns batches of token ids into
//! logits. On the CPU every row's logits are, bit for bit, independent of the rest of the
//! batch, of the number of threads and of how a prompt is cut (`docs/engine.md` says how).
//!
//! Nothing here samples, knows a watermark or reads text.

mod batch;
mod cache;
mod config;
mod cpu;
mod defaults;
mod distribution;
mod forcing;
mod generation;
pub mod linear;
mod model;
mod models;
mod ops;
mod rope;
mod session;
mod special;
mod weights;

pub use batch::{Logits, LogitsAt, Sequence};
pub use cache::KvCache;
/// Where a model computes; only the CPU in this version.
pub use candle_core::Device;
pub use config::Architecture;
pub use cpu::CacheType;
pub use defaults::GenerationDefaults;
pub use distribution::Distribution;
pub use forcing::Forcing;
pub use generation::{Finish, Generation, StepRecord, Timing};
pub use model::{Model, ModelInfo};
pub use session::{Event, Request, RequestId, Session};
pub use special::{end_ids, never_marked};
