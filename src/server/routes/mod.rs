//! One file a route, and the registry of all.

mod detect;
mod docs;
mod health;
mod metrics;
mod openapi;
mod page;
mod ready;

use super::router::Route;

/// Every route of the service.
pub(super) fn all() -> Vec<Route> {
    vec![
        detect::route(),
        docs::route(),
        health::route(),
        metrics::route(),
        openapi::route(),
        page::route(),
        page::files(),
        ready::route(),
    ]
}
