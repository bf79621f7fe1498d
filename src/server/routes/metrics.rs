//! `GET /metrics`: the figures of the service, for Prometheus.

use axum::extract::State as Extract;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;

use crate::server::access::Role;
use crate::server::error::ApiError;
use crate::server::metrics::{Observed, QueueKind};
use crate::server::router::{Need, Route};
#[cfg(feature = "engine")]
use crate::server::state::Ready;
use crate::server::state::State;

/// The media type of what the encoder writes.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn route() -> Route {
    Route { path: "/metrics", need: Need::Role(Role::Operator), methods: get(metrics) }
}

async fn metrics(Extract(state): Extract<State>) -> Result<impl IntoResponse, ApiError> {
    let metrics = state.metrics();
    metrics.set_queue_length(QueueKind::Judging, state.pool().waiting());
    #[cfg(feature = "engine")]
    if let Ok(Ready { generator: Some(generator), .. }) = state.ready() {
        metrics.set_queue_length(QueueKind::Generation, generator.load().waiting);
    }
    let observed = Observed {
        lost_audit_lines: state.audit().lost(),
        lost_access_lines: state.audit().lost_access(),
        uptime: state.started().elapsed(),
    };
    Ok(([(CONTENT_TYPE, OPEN_METRICS)], metrics.render(observed)?))
}
