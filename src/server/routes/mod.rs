//! One file a route, and the registry of all.

mod batch;
mod chat;
mod completions;
mod detect;
mod docs;
mod file;
mod health;
mod metrics;
mod models;
mod moderations;
mod openapi;
mod page;
mod profiles;
mod ready;
mod service;

use super::router::Route;

/// Every route of the service.
pub(super) fn all() -> Vec<Route> {
    vec![
        batch::route(),
        chat::route(),
        completions::route(),
        detect::route(),
        docs::route(),
        file::route(),
        health::route(),
        metrics::route(),
        models::list(),
        models::one(),
        moderations::route(),
        openapi::route(),
        page::route(),
        page::files(),
        profiles::route(),
        ready::route(),
        service::route(),
    ]
}
