//! The service: detection, marked generation and the reviewer's page over HTTP.
//!
//! Handlers translate: a request into a library call, a result into a reply. No statistics, no
//! verdict and no rule of the mark is made here. Every route stands in one registry
//! (`router.rs`), behind one access check, one body limit and one error shape.

mod access;
mod audit;
mod body;
mod config;
mod error;
mod generation;
mod json;
mod layers;
mod limits;
mod listen;
mod metrics;
mod pool;
mod profiles;
mod router;
mod routes;
mod state;

pub use access::{Access, Caller, Role};
pub use audit::{Audit, Entry};
pub use config::{Config, LimitsConfig, ModelConfig, ProfileConfig, Size};
pub use error::{ApiError, ErrorType};
pub use generation::{
    Endpoint, EnforceBounds, GenerationProfile, GenerationSettings, Generator, Policy,
    UNBOUNDED_FIELDS,
};
#[cfg(feature = "engine")]
pub use generation::{Delivery, Load, Places, Queue, QueueRoom, Refusal};
pub use json::Json;
pub use limits::Limits;
pub use listen::{Listener, serve};
pub use metrics::Metrics;
pub use pool::{Pool, PoolError};
pub use profiles::{Profiles, Served, Standing};
pub use router::router;
pub use state::{Ready, Room, State};
