//! `GET /health`: the process answers. It does no work and knows nothing of models.

use axum::routing::get;
use serde_json::json;

use crate::server::router::{Need, Route};

pub(super) fn route() -> Route {
    Route { path: "/health", need: Need::Nothing, methods: get(health) }
}

async fn health() -> axum::Json<serde_json::Value> {
    axum::Json(json!({"status": "ok"}))
}
