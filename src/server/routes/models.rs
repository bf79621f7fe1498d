//! `GET /v1/models` and `GET /v1/models/{id}`: which models a request may name. A detection service
//! has none.

use axum::Json;
use axum::extract::{Path, State as Extract};
use axum::routing::get;
use serde_json::{Value, json};

use crate::server::access::Role;
use crate::server::error::ApiError;
use crate::server::generation::model_not_found;
use crate::server::router::{Need, Route};
use crate::server::state::State;

pub(super) fn list() -> Route {
    Route { path: "/v1/models", need: Need::Role(Role::Operator), methods: get(models) }
}

pub(super) fn one() -> Route {
    // A name may hold slashes: org/repo.
    Route { path: "/v1/models/{*id}", need: Need::Role(Role::Operator), methods: get(model) }
}

async fn models(Extract(state): Extract<State>) -> Result<Json<Value>, ApiError> {
    let models = state.ready()?.generator.as_ref().map(|generator| generator.models());
    Ok(Json(json!({"object": "list", "data": models.unwrap_or_default()})))
}

async fn model(
    Extract(state): Extract<State>,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let generator = state.ready()?.generator.as_ref();
    let found = generator.and_then(|generator| generator.find_model(&id));
    found.map(Json).ok_or_else(|| model_not_found(&id))
}
