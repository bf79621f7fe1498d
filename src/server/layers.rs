//! What happens around every handler: a request id, a bound on its time, a place for panics,
//! headers for browsers, figures and log lines.

use std::io::Write;
use std::time::Instant;

use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use tokio::time::timeout;
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::access::{Caller, Origin};
use super::audit::AccessEntry;
use super::error::{ApiError, Cause, ErrorCode, ErrorType};
use super::metrics::InFlight;
use super::state::State;
use crate::prf::hex;

/// The header with the id of a request.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id that is taken from a client.
const MAX_ID: usize = 64;

/// How long a browser may remember which requests are allowed.
const PREFLIGHT_AGE: std::time::Duration = std::time::Duration::from_mins(10);

/// The id of a request, for logs and replies.
#[derive(Clone, Debug)]
pub(super) struct RequestId(pub(super) String);

/// Says something on standard error. Never a text, never a key.
pub(crate) fn log(line: &str) {
    // Nobody is left to tell when standard error is gone.
    let _ = writeln!(std::io::stderr().lock(), "wm: {}", line.replace(['\n', '\r'], " "));
}

/// Gives the request an id, bounds its time, dresses its reply and counts it.
pub(super) async fn around(
    axum::extract::State(state): axum::extract::State<State>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let flight = state.metrics().begin();
    let id = request_id(&request);
    let method = method_name(request.method());
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("unmatched", MatchedPath::as_str).to_owned();
    let has_body = !request.body().is_end_stream();
    request.extensions_mut().insert(RequestId(id.clone()));
    request.extensions_mut().insert(started);
    let limit = state.limits().reply_time;
    let mut response = timeout(limit, next.run(request)).await.unwrap_or_else(|_| {
        ApiError::new(
            StatusCode::GATEWAY_TIMEOUT,
            ErrorType::Unavailable,
            "timeout",
            format!("no result within {} s", limit.as_secs()),
        )
        .into_response()
    });
    if let Some(Cause(cause)) = response.extensions().get() {
        log(&format!("request {id}: internal error: {cause}"));
    }
    let is_unread = has_body && answers_the_head(response.status());
    let headers = response.headers_mut();
    if is_unread {
        // A proxy must not give the rest of this body to the next request.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    headers.entry(header::X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    headers.entry(header::REFERRER_POLICY).or_insert(HeaderValue::from_static("no-referrer"));
    headers.entry(header::X_FRAME_OPTIONS).or_insert(HeaderValue::from_static("DENY"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));

    let status = response.status().as_u16();
    state.metrics().answered(method, &route, status, started.elapsed());
    if let Some(ErrorCode(code)) = response.extensions().get() {
        state.metrics().refused(code);
    }
    let caller = response.extensions().get::<Caller>().map(|caller| caller.name.clone());
    let entry = AccessEntry { request_id: id, caller, method, route, status, bytes: 0 };
    finish(response, Tail { state, entry, started, _flight: flight })
}

/// What is done once a reply is sent, or its client has left.
struct Tail {
    state: State,
    entry: AccessEntry,
    started: Instant,
    _flight: InFlight,
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.state.audit().record_access(&self.entry, self.started.elapsed());
    }
}

/// Ends with the body, when that is a stream; now, when it is there as a whole.
fn finish(response: Response, mut tail: Tail) -> Response {
    if let Some(bytes) = response.body().size_hint().exact() {
        tail.entry.bytes = bytes;
        return response;
    }
    response.map(|body| {
        Body::from_stream(body.into_data_stream().inspect(move |piece| {
            // By reference, so that the closure holds the whole value and not a copy of its count.
            let tail = &mut tail;
            let length = piece.as_ref().map_or(0, axum::body::Bytes::len);
            tail.entry.bytes += length as u64;
        }))
    })
}

/// Whether a reply of this status may have been made before the body was read.
fn answers_the_head(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403..=405 | 408 | 413 | 415 | 421 | 429 | 500 | 503 | 504)
}

/// Methods by name; a client may write anything there.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "other",
    }
}

/// The client's own id when it is plain, else a fresh one.
fn request_id(request: &Request) -> String {
    let plain = |id: &&str| {
        (1..=MAX_ID).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let given = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok());
    given.filter(plain).map_or_else(fresh_id, str::to_owned)
}

/// 16 random bytes in hexadecimal digits; zeros when the system has none to give.
pub(super) fn fresh_id() -> String {
    let mut bytes = [0; 16];
    // An id names a request in a log; it protects nothing.
    let _ = getrandom::fill(&mut bytes);
    hex(&bytes)
}

/// Lets the pages of these origins use the service from a browser. Credentials of the browser are
/// never allowed: a page has to hold its own API key.
pub(super) fn cors(origins: &[Origin]) -> CorsLayer {
    let origins = origins.iter().map(|origin| origin.value().clone());
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE, REQUEST_ID])
        .expose_headers([REQUEST_ID, header::RETRY_AFTER])
        .max_age(PREFLIGHT_AGE)
}

/// The reply in place of one that a panic took.
pub(super) fn panicked(_cause: Box<dyn std::any::Any + Send>) -> Response {
    ApiError::internal().into_response()
}
