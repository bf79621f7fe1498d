//! `GET /openapi.json`: the description of the interface, for programs.
//!
//! It is written by hand; `tests/server/openapi.rs` holds it against the routes, the fields that
//! they take and the replies that they give.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;

use crate::server::router::{Need, Route};

/// The document.
pub(in crate::server) const DOCUMENT: &str = include_str!("../openapi.json");

pub(super) fn route() -> Route {
    Route { path: "/openapi.json", need: Need::Nothing, methods: get(openapi) }
}

async fn openapi() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT)
}
