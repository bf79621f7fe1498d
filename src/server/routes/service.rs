//! `GET /v1/service`: what this service is and what the caller may do.

use axum::extract::State as Extract;
use axum::routing::get;
use axum::{Extension, Json};
use serde::Serialize;

use crate::server::access::{Caller, Role};
use crate::server::router::{Need, Route};
use crate::server::state::State;

pub(super) fn route() -> Route {
    Route { path: "/v1/service", need: Need::Role(Role::Public), methods: get(service) }
}

#[derive(Serialize)]
struct Service {
    version: &'static str,
    /// Whether this service generates.
    engine: bool,
    detect: DetectLimits,
    /// The public half of the key that signs reports.
    signing_key: Option<String>,
    caller: Me,
}

#[derive(Serialize)]
struct DetectLimits {
    /// Bytes of a body.
    max_body: usize,
    /// Texts of a list.
    inputs: usize,
}

#[derive(Serialize)]
struct Me {
    name: String,
    role: Role,
}

async fn service(
    Extract(state): Extract<State>,
    Extension(caller): Extension<Caller>,
) -> Json<Service> {
    let limits = state.limits();
    Json(Service {
        version: env!("CARGO_PKG_VERSION"),
        engine: state.ready().is_ok_and(|ready| ready.generator.is_some()),
        detect: DetectLimits { max_body: limits.max_body, inputs: limits.inputs },
        signing_key: state.signer().map(|signer| signer.public().to_string()),
        caller: Me { name: caller.name, role: caller.role },
    })
}
