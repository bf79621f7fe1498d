//! What happens around every handler: a request id, a place for panics, headers for browsers.

use std::io::Write;
use std::time::Instant;

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use super::error::{ApiError, ErrorType};
use super::state::State;

/// The header with the id of a request.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id that is taken from a client.
const MAX_ID: usize = 64;

/// The id of a request, for logs and replies.
#[derive(Clone, Debug)]
pub(super) struct RequestId(pub(super) String);

/// Says something on standard error. Never a text, never a key.
pub(crate) fn log(line: &str) {
    // Nobody is left to tell when standard error is gone.
    let _ = writeln!(std::io::stderr().lock(), "wm: {}", line.replace(['\n', '\r'], " "));
}

/// Gives the request an id, bounds its time and dresses its reply.
pub(super) async fn around(
    axum::extract::State(state): axum::extract::State<State>,
    mut request: Request,
    next: Next,
) -> Response {
    let id = request_id(&request);
    request.extensions_mut().insert(RequestId(id.clone()));
    request.extensions_mut().insert(Instant::now());
    let limit = state.limits().reply_time;
    let mut response = timeout(limit, next.run(request)).await.unwrap_or_else(|_| {
        ApiError::new(
            axum::http::StatusCode::GATEWAY_TIMEOUT,
            ErrorType::Unavailable,
            "timeout",
            format!("no result within {} s", limit.as_secs()),
        )
        .into_response()
    });
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    headers.entry(header::X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    headers.entry(header::REFERRER_POLICY).or_insert(HeaderValue::from_static("no-referrer"));
    headers.entry(header::X_FRAME_OPTIONS).or_insert(HeaderValue::from_static("DENY"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
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
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The reply in place of one that a panic took.
#[expect(clippy::needless_pass_by_value, reason = "the form that the layer calls")]
pub(super) fn panicked(_cause: Box<dyn std::any::Any + Send>) -> Response {
    ApiError::internal().into_response()
}
