//! The service: detection, marked generation and the reviewer's page over HTTP.
//!
//! Handlers translate: a request into a library call, a result into a reply. No statistics, no
//! verdict and no rule of the mark is made here. Every route stands in one registry
//! (`router.rs`), behind one access check, one body limit and one error shape.

mod access;
mod audit;
mod body;
mod config;
mod detecting;
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
mod wire;

pub use access::{
    Access, AccessConfig, ApiKey, Caller, KeyFile, KeyRing, KeyStatus, Moment, Origin, Rates, Role,
    StoredKey,
};
pub use audit::{AccessLog, Audit, Entry};
pub use config::{Config, LimitsConfig, ModelConfig, ProfileConfig, Size};
pub use error::{ApiError, ErrorType};
#[cfg(feature = "engine")]
pub use generation::{Delivery, GenerationQueue, Load, Places, QueueRoom, Refusal};
pub use generation::{
    Endpoint, EnforceBounds, GenerationProfile, GenerationSettings, Generator, Policy,
};
pub use json::Json;
pub use limits::Limits;
pub use listen::{Listener, serve};
pub use metrics::{Metrics, QueueKind};
pub use pool::{Pool, PoolError};
pub use profiles::{Profiles, Served, Standing};
pub use router::{paths, router};
pub use state::{Ready, Room, Setup, State};
