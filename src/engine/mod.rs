//! Runs causal language models: from a model file to logits, and from requests to texts.
//!
//! [`Model`] loads a GGUF file or a safetensors folder and turns batches of token ids into
//! logits, on the CPU or, with the feature `cuda`, on an NVIDIA GPU ([`Placement`]). On the CPU
//! every row's logits are, bit for bit, independent of the rest of the batch, of the number of
//! threads and of how a prompt is cut (`docs/engine.md` says how).
//!
//! [`TextEngine`] joins a model with its tokenizer, [`Mark`] a profile with its key, and a
//! [`Session`] lets any number of requests step together. How a token is chosen is
//! [`crate::sample`]'s, what a mark does [`crate::scheme`]'s; no verdict is made here.

mod batch;
mod cache;
mod config;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(not(feature = "cuda"))]
#[path = "cuda_absent.rs"]
mod cuda;
mod defaults;
mod device;
mod distribution;
mod forcing;
mod generation;
pub mod linear;
mod mark;
mod model;
mod models;
mod ops;
mod placement;
mod reading;
mod rope;
mod scores;
mod session;
mod special;
mod text_engine;
mod weights;

pub use batch::{Logits, LogitsAt, Sequence};
pub use cache::{CacheType, KvCache};
/// Where a model computes: the CPU or a CUDA device. [`DeviceChoice`] opens one by its name.
pub use candle_core::Device;
pub use config::Architecture;
#[cfg(feature = "cuda")]
pub use cuda::{DeviceHistory, DeviceSampler, PreparedRows};
pub use defaults::GenerationDefaults;
pub use device::{CudaDeviceInfo, DeviceChoice, DeviceReport, devices};
pub use distribution::Distribution;
pub use forcing::Forcing;
pub use generation::{Alternative, Finish, Generation, StepRecord, Timing};
pub use mark::Mark;
pub use model::{Model, ModelInfo};
pub use placement::{BatchShape, DeviceDtype, Placement, SamplerPlace};
pub use reading::Reading;
pub use session::{Drawn, Event, Observe, Request, RequestId, Session};
pub use special::{end_ids, never_marked};
pub use text_engine::{DEFAULT_MAX_TOKENS, TextEngine, random_seed};
