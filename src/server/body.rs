//! Bodies of requests: bounded in bytes, time and common memory.

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use futures_util::StreamExt;
use tokio::time::timeout;

use super::error::{ApiError, ErrorType};
use super::limits::Limits;
use super::state::{Room, State};

/// How long a request waits for the common memory of bodies before it is sent away.
const ROOM_TIME: std::time::Duration = std::time::Duration::from_secs(10);

/// Bytes of a body that need no share of the common memory: the number of connections bounds them.
/// So nobody's large bodies can keep out an ordinary request.
const FREE: usize = 64 << 10;

/// Bytes of the common memory that are taken at a time.
pub(super) const STEP: usize = 256 << 10;

/// Reads the whole body; the second value holds its share of the common memory, which is taken as
/// the bytes arrive: what a head declares costs nobody anything.
///
/// # Errors
/// 413 when it is longer than the limit, 408 when it takes too long, 503 when too many bodies are
/// held, 400 when it breaks off.
pub(super) async fn read_body(request: Request, state: &State) -> Result<(Bytes, Room), ApiError> {
    let declared = declared_length(&request, state.limits().max_body)?.unwrap_or(0);
    timeout(state.limits().body_time, collect(request, state, declared))
        .await
        .map_err(|_| too_slow(state.limits()))?
}

/// Waits for a share of the common memory of bodies.
///
/// # Errors
/// 503 when there is none for a while.
pub(super) async fn take_room(state: &State, bytes: usize) -> Result<Room, ApiError> {
    timeout(ROOM_TIME, state.room(bytes))
        .await
        .map_err(|_| ApiError::unavailable("busy", "too many requests at once; try again later", 1))
}

/// The body took too long.
pub(super) fn too_slow(limits: &Limits) -> ApiError {
    ApiError::new(
        StatusCode::REQUEST_TIMEOUT,
        ErrorType::InvalidRequest,
        "body_timeout",
        format!("the body did not arrive within {} s", limits.body_time.as_secs()),
    )
}

/// The connection ended inside the body.
pub(super) fn broken_off() -> ApiError {
    ApiError::bad_request("broken_body", "the body broke off before its end")
}

/// The length that the head declares, if it is not above the limit.
pub(super) fn declared_length(request: &Request, limit: usize) -> Result<Option<usize>, ApiError> {
    let length = request.headers().get(CONTENT_LENGTH);
    let length: Option<u64> = length.and_then(|value| value.to_str().ok()?.parse().ok());
    match length {
        Some(length) if length > limit as u64 => Err(too_large(length, limit)),
        Some(length) => Ok(usize::try_from(length).ok()),
        None => Ok(None),
    }
}

async fn collect(
    request: Request,
    state: &State,
    declared: usize,
) -> Result<(Bytes, Room), ApiError> {
    let limit = state.limits().max_body;
    let mut stream = request.into_body().into_data_stream();
    let (mut room, mut reserved) = (Room::none(), FREE);
    let mut first = None;
    let mut whole = Vec::new();
    while let Some(piece) = stream.next().await {
        let piece = piece.map_err(|_| broken_off())?;
        let size = whole.len() + first.as_ref().map_or(0, Bytes::len) + piece.len();
        if size > limit {
            return Err(too_large(size as u64, limit));
        }
        if size > reserved {
            let more = (size - reserved).max(STEP);
            room.join(take_room(state, more).await?);
            reserved += more;
        }
        // Most bodies come in one piece, which is passed on as it is.
        match (first.take(), whole.is_empty()) {
            (None, true) => first = Some(piece),
            (Some(before), _) => {
                // Addresses, not memory: pages are had when bytes are written to them.
                whole.reserve_exact(declared.max(size));
                whole.extend_from_slice(&before);
                whole.extend_from_slice(&piece);
            }
            (None, false) => whole.extend_from_slice(&piece),
        }
    }
    Ok((first.unwrap_or_else(|| whole.into()), room))
}

/// The body is longer than the limit.
pub(super) fn too_large(found: u64, limit: usize) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        ErrorType::InvalidRequest,
        "body_too_large",
        format!("the body has {found} bytes or more; this service takes at most {limit}"),
    )
}
