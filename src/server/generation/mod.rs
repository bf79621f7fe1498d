//! Marked generation: requests of the OpenAI interface, stepped together through one model.
//!
//! `body`, `refused` and `prompt` read a request, `policy` decides on the mark, `plan` joins them
//! to what the engine is to do, `queue` and `worker` are the way to the one thread that owns the
//! model, `collect`, `reply` and `logprobs` make the answer. No token is chosen here and no
//! verdict is made; a request can neither choose a key nor see one.

mod endpoint;
mod settings;

pub use endpoint::Endpoint;
pub use settings::{EnforceBounds, GenerationSettings, Policy, UNBOUNDED_FIELDS};

#[cfg(feature = "engine")]
mod body;
#[cfg(feature = "engine")]
mod collect;
#[cfg(feature = "engine")]
mod generator;
#[cfg(feature = "engine")]
mod logprobs;
#[cfg(feature = "engine")]
mod plan;
#[cfg(feature = "engine")]
mod policy;
#[cfg(feature = "engine")]
mod prompt;
#[cfg(feature = "engine")]
mod queue;
#[cfg(feature = "engine")]
mod refused;
#[cfg(feature = "engine")]
mod reply;
#[cfg(feature = "engine")]
mod worker;

#[cfg(not(feature = "engine"))]
#[path = "generator_absent.rs"]
mod generator;

pub use generator::{GenerationProfile, Generator};
#[cfg(feature = "engine")]
pub use queue::{Delivery, Load, Places, Queue, Refusal, Room};
