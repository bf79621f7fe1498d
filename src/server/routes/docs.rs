//! `GET /docs`: the description of the interface, for people. It is drawn from `/openapi.json` by
//! the page's own script.

use axum::routing::get;

use crate::server::router::{Need, Route};
use crate::server::routes::page;

pub(super) fn route() -> Route {
    let docs = || async { page::html(include_str!("../page/docs.html")) };
    Route { path: "/docs", need: Need::Nothing, methods: get(docs) }
}
