//! `GET /` and `GET /page/{file}`: the reviewer's page and the files it is made of.
//!
//! Plain files, part of the program: nothing is built, and nothing is loaded from elsewhere. The
//! page is a client of the interface like any other.

use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::server::error::ApiError;
use crate::server::router::{Need, Route};

/// What a browser may do with a page: load from this service only, run no inline code, send no
/// form, stand in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' \
                      data:; connect-src 'self'; form-action 'none'; base-uri 'none'; \
                      frame-ancestors 'none'";

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! file {
    ($name:literal, $media_type:expr) => {
        File {
            name: $name,
            media_type: $media_type,
            content: include_str!(concat!("../page/", $name)),
        }
    };
}

/// A file of a page.
struct File {
    name: &'static str,
    media_type: &'static str,
    content: &'static str,
}

/// Everything that the two pages load.
const FILES: &[File] = &[
    file!("page.css", "text/css; charset=utf-8"),
    file!("api.js", SCRIPT),
    file!("docs.js", SCRIPT),
    file!("dom.js", SCRIPT),
    file!("numbers.js", SCRIPT),
    file!("overview.js", SCRIPT),
    file!("page.js", SCRIPT),
    file!("report.js", SCRIPT),
    file!("tables.js", SCRIPT),
    file!("text.js", SCRIPT),
    file!("visible.js", SCRIPT),
    file!("words.js", SCRIPT),
];

pub(super) fn route() -> Route {
    let page = || async { html(include_str!("../page/index.html")) };
    Route { path: "/", need: Need::Nothing, methods: get(page) }
}

pub(super) fn files() -> Route {
    Route { path: "/page/{file}", need: Need::Nothing, methods: get(file) }
}

async fn file(Path(name): Path<String>) -> Result<Response, ApiError> {
    match FILES.iter().find(|file| file.name == name) {
        Some(file) => Ok(dressed(file.media_type, file.content)),
        None => Err(ApiError::not_found("unknown_path", "the page has no file of this name")),
    }
}

/// A page under the policy.
pub(super) fn html(content: &'static str) -> Response {
    dressed("text/html; charset=utf-8", content)
}

/// A file under the policy. A browser asks again each time, so that after an update of the service
/// no page is made of files of two versions.
fn dressed(media_type: &'static str, content: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, media_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, content).into_response()
}
