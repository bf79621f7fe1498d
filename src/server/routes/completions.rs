//! `POST /v1/completions`: continues prompts, in the shape of the OpenAI interface.

use axum::extract::{Request, State as Extract};
use axum::response::Response;
use axum::routing::post;

use crate::server::access::Role;
use crate::server::error::ApiError;
use crate::server::generation::{Endpoint, answer};
use crate::server::router::{Need, Route};
use crate::server::state::State;

pub(super) fn route() -> Route {
    let path = Endpoint::Completions.path();
    Route { path, need: Need::Role(Role::Operator), methods: post(complete) }
}

async fn complete(Extract(state): Extract<State>, request: Request) -> Result<Response, ApiError> {
    answer(Endpoint::Completions, request, &state).await
}
