//! Marked generation: requests of the `OpenAI` interface, stepped together through one model.
//!
//! `body`, `lists`, `refused` and `prompt` read a request, `policy` and `bounds` decide on the mark,
//! `plan` joins them to what the engine is to do, `queue` and `worker` are the way to the one thread
//! that owns the model, `collect`, `reply` and `logprobs` make the answer, `trace` leaves the audit
//! line. No token is chosen here and no verdict is made; a request can neither choose a key nor see
//! one.

mod bounds;
mod endpoint;
mod settings;

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;

use super::error::ApiError;
use super::state::State;

pub use bounds::EnforceBounds;
pub use endpoint::Endpoint;
pub use settings::{GenerationSettings, Policy};

#[cfg(feature = "engine")]
mod body;
#[cfg(feature = "engine")]
mod collect;
#[cfg(feature = "engine")]
mod generator;
#[cfg(feature = "engine")]
mod lists;
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
mod trace;
#[cfg(feature = "engine")]
mod worker;

#[cfg(not(feature = "engine"))]
#[path = "generator_absent.rs"]
mod generator;

pub use generator::{GenerationProfile, Generator};
#[cfg(feature = "engine")]
pub use queue::{Delivery, GenerationQueue, Load, Places, QueueRoom, Refusal};

/// Answers a request of one of the two routes.
///
/// # Errors
/// 404 in a service without a model, and everything that can be wrong with the request.
pub(super) async fn answer(
    endpoint: Endpoint,
    request: Request,
    state: &State,
) -> Result<Response, ApiError> {
    let Some(generator) = &state.ready()?.generator else {
        let message = "this service only detects: it was started without a model";
        return Err(ApiError::not_found("no_generation", message));
    };
    Arc::clone(generator).answer(endpoint, request, state).await
}

/// The reply to a name that no model has.
pub(super) fn model_not_found(name: &str) -> ApiError {
    let name: String = name.chars().take(100).collect();
    let message = format!("there is no model {name:?} here; GET /v1/models lists them");
    ApiError::not_found("model_not_found", message)
}
