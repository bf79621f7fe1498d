//! One file a route, and the registry of all.

mod chat;
mod completions;
mod health;
mod models;
mod ready;

use super::router::Route;

/// Every route of the service.
pub(super) fn all() -> Vec<Route> {
    vec![
        health::route(),
        ready::route(),
        completions::route(),
        chat::route(),
        models::list(),
        models::one(),
    ]
}
