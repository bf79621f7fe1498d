//! `POST /v1/detect/batch`: a detection request a line, a result a line, in order, while the body
//! is still arriving.

use std::future::ready;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State as Extract};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::{StreamExt, stream};
use serde::Serialize;
use serde_json::Value;

use crate::server::access::{Caller, Role};
use crate::server::detecting::{Asker, DetectRequest, Entrance, Inputs, Line, Lines, Outcome};
use crate::server::detecting::{Plan, in_pieces, json};
use crate::server::error::ApiError;
use crate::server::json::{from_slice, require_media_type};
use crate::server::layers::RequestId;
use crate::server::router::{Need, Route};
use crate::server::state::State;

/// What bodies of JSON lines are declared as.
const MEDIA_TYPES: [&str; 6] = [
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/x-jsonlines",
    "application/json-lines",
    "application/json",
];

pub(super) fn route() -> Route {
    Route { path: "/v1/detect/batch", need: Need::Role(Role::Reviewer), methods: post(batch) }
}

async fn batch(
    Extract(state): Extract<State>,
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response, ApiError> {
    let is_lines = |essence: &str| MEDIA_TYPES.contains(&essence);
    require_media_type(request.headers(), MEDIA_TYPES[0], is_lines)?;
    state.ready()?;
    let lines = Lines::new(request, &state)?;
    // A few lines more than threads, so that none of these waits for the next line.
    let window = 2 * state.limits().workers;
    let asker = Asker { state, caller, request: id, action: "detect" };
    let lines = stream::unfold(lines, |mut lines| async move {
        let line = lines.next().await?;
        Some((line, lines))
    });
    let results = lines.enumerate().map(move |(index, line)| {
        let asker = asker.clone();
        async move {
            match line {
                Ok(line) => Ok(result(&asker, index, line).await),
                Err(error) => Err((index, error)),
            }
        }
    });
    let mut results = Box::pin(results.buffered(window));
    // The head of the reply waits for the first result: what is wrong before it has a status.
    let first = match results.next().await {
        None => {
            let message = "the body is empty; send a JSON object a line";
            return Err(ApiError::bad_request("empty_body", message));
        }
        Some(Err((0, error))) => return Err(error),
        Some(first) => first,
    };
    let results = stream::once(ready(first))
        .chain(results)
        .map(|result| result.unwrap_or_else(|(index, error)| error_line(index, None, &error)));
    Ok(([(CONTENT_TYPE, MEDIA_TYPES[0])], in_pieces(results)).into_response())
}

/// One line of the reply.
#[derive(Serialize)]
struct Item<'a> {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    #[serde(flatten)]
    outcome: Outcome<'a>,
}

async fn result(asker: &Asker, index: usize, line: Line) -> Vec<u8> {
    let line = Arc::new(line);
    let judged = asker.run_patiently(move |asker| Ok(judge(asker, index, &line))).await;
    judged.unwrap_or_else(|error| error_line(index, None, &error))
}

/// Reads, judges and answers a line, all on a thread of the pool.
fn judge(asker: &Asker, index: usize, line: &Line) -> Vec<u8> {
    let mut id = None;
    let judged = from_slice(line.bytes()).and_then(|mut request: DetectRequest| {
        id = request.id.take();
        let (plan, inputs) = Plan::resolve(&asker.state, &asker.caller, Entrance::Batch, request)?;
        let Inputs::One(input) = inputs else { return Err(ApiError::internal()) };
        let judged = plan.judge(&input, asker)?;
        Ok(written(&Item { index, id: id.as_ref(), outcome: plan.outcome(&judged)? }))
    });
    judged.unwrap_or_else(|error| {
        let id = id.or_else(|| id_of(line.bytes()));
        error_line(index, id.as_ref(), &error)
    })
}

/// The `id` of a line that is wrong elsewhere, where it can still be read.
fn id_of(line: &[u8]) -> Option<Value> {
    #[derive(serde::Deserialize)]
    struct Named {
        id: Option<Value>,
    }
    serde_json::from_slice::<Named>(line).ok()?.id
}

fn error_line(index: usize, id: Option<&Value>, error: &ApiError) -> Vec<u8> {
    written(&Item { index, id, outcome: Outcome::of(error) })
}

fn written(item: &Item<'_>) -> Vec<u8> {
    let mut line = json(item);
    line.push(b'\n');
    line
}
