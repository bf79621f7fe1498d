//! One file a route, and the registry of all.

mod health;
mod ready;

use super::router::Route;

/// Every route of the service.
pub(super) fn all() -> Vec<Route> {
    vec![health::route(), ready::route()]
}
