//! `GET /ready`: 200 once profiles and engine are loaded, 503 before.

use axum::extract::State as Extract;
use axum::routing::get;
use serde_json::json;

use crate::server::error::ApiError;
use crate::server::router::{Need, Route};
use crate::server::state::State;

pub(super) fn route() -> Route {
    Route { path: "/ready", need: Need::Nothing, methods: get(ready) }
}

async fn ready(Extract(state): Extract<State>) -> Result<axum::Json<serde_json::Value>, ApiError> {
    let ready = state.ready()?;
    if ready.generator.as_ref().is_some_and(|generator| !generator.is_ready()) {
        let message = "the model answers no more; restart the service";
        return Err(ApiError::unavailable("generation_ended", message, 60));
    }
    Ok(axum::Json(json!({"status": "ready"})))
}
