//! `POST /v1/detect/file`: files in a form, each read and judged.

use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::multipart::MultipartError;
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request, State as Extract};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::{StreamExt, stream};
use serde::Serialize;

use crate::server::access::{Caller, Role};
use crate::server::body::read_body;
use crate::server::detecting::{
    Asker, DetectRequest, Entrance, Input, Outcome, Plan, json, list, notes, read,
};
use crate::server::error::ApiError;
use crate::server::json::{from_slice, require_media_type};
use crate::server::layers::RequestId;
use crate::server::router::{Need, Route};
use crate::server::state::State;

/// Characters of a file's name that are repeated.
const LONGEST_NAME: usize = 200;

pub(super) fn route() -> Route {
    Route { path: "/v1/detect/file", need: Need::Role(Role::Reviewer), methods: post(file) }
}

async fn file(
    Extract(state): Extract<State>,
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response, ApiError> {
    require_media_type(request.headers(), FORM, |essence| essence == FORM)?;
    let declared = request.headers().get(CONTENT_TYPE).cloned();
    let (bytes, room) = read_body(request, &state).await?;
    let mut whole = Request::new(Body::from(bytes));
    // The body is within the limit of the service already.
    DefaultBodyLimit::disable().apply(&mut whole);
    whole.headers_mut().extend(declared.map(|declared| (CONTENT_TYPE, declared)));
    let form = Form::read(whole, state.limits().inputs).await?;
    let (plan, _) = Plan::resolve(&state, &caller, Entrance::File, form.options)?;
    let asker = Asker { state, caller, request: id, action: "detect" };
    let plan = Arc::new(plan);
    let together = asker.state.limits().workers + 1;
    let items = form.files.into_iter().enumerate().map(move |(index, sent)| {
        let (plan, asker) = (Arc::clone(&plan), asker.clone());
        async move { item(&asker, plan, index, sent).await }
    });
    let reply = list(stream::iter(items).buffered(together), room);
    Ok(([(CONTENT_TYPE, "application/json")], reply).into_response())
}

const FORM: &str = "multipart/form-data";

/// The parts of a form.
struct Form {
    options: DetectRequest,
    files: Vec<Sent>,
}

/// A file as it was sent.
struct Sent {
    name: String,
    media_type: Option<String>,
    bytes: Bytes,
}

impl Form {
    async fn read(request: Request, most: usize) -> Result<Self, ApiError> {
        let refuse = |field: &str, message: String| Err(ApiError::invalid(field, message));
        let mut parts = Multipart::from_request(request, &()).await.map_err(|rejection| {
            ApiError::bad_request("invalid_multipart", rejection.body_text())
        })?;
        let (mut options, mut files) = (None, Vec::new());
        while let Some(part) = parts.next_field().await.map_err(|error| broken(&error))? {
            match part.name() {
                Some("file") if files.len() == most => {
                    let message = format!("more than the {most} files of one request");
                    return refuse("file", message);
                }
                Some("file") => {
                    let name = part.file_name().unwrap_or_default();
                    let name = name.chars().take(LONGEST_NAME).collect();
                    let media_type = part.content_type().map(str::to_owned);
                    let bytes = part.bytes().await.map_err(|error| broken(&error))?;
                    files.push(Sent { name, media_type, bytes });
                }
                Some("options") if options.is_none() => {
                    let bytes = part.bytes().await.map_err(|error| broken(&error))?;
                    options = Some(from_slice(&bytes)?);
                }
                Some("options") => return refuse("options", "the part stands twice".to_owned()),
                other => {
                    let name: String = other.unwrap_or_default().chars().take(64).collect();
                    let message = format!("a form has parts `file` and `options`, not {name:?}");
                    return Err(ApiError::bad_request("unknown_field", message).param(name));
                }
            }
        }
        if files.is_empty() {
            return refuse("file", "the form has no part `file`".to_owned());
        }
        Ok(Self { options: options.unwrap_or_default(), files })
    }
}

fn broken(error: &MultipartError) -> ApiError {
    ApiError::bad_request("invalid_multipart", format!("the form is broken: {}", error.body_text()))
}

/// One file of the reply.
#[derive(Serialize)]
struct Item<'a> {
    index: usize,
    name: &'a str,
    #[serde(flatten)]
    reading: Option<Shown<'a>>,
    #[serde(flatten)]
    outcome: Outcome<'a>,
}

/// A file that could be read.
#[derive(Serialize)]
struct Shown<'a> {
    format: &'static str,
    notes: &'a [String],
    text: &'a str,
}

async fn item(asker: &Asker, plan: Arc<Plan>, index: usize, sent: Sent) -> Vec<u8> {
    let Sent { name, media_type, bytes } = sent;
    let name = Arc::new(name);
    let judged = match read(&asker.state, &name, media_type.as_deref(), bytes).await {
        Err(error) => Err(error),
        Ok(extracted) => {
            let format = extracted.format.name();
            let notes = Arc::new(notes(&extracted));
            let (name, input) = (Arc::clone(&name), Arc::new(Input::Text(extracted.text)));
            let own = Arc::clone(&plan);
            let job = move |asker: &Asker| {
                let judged = own.judge(&input, asker)?;
                let Input::Text(text) = &*input else { return Err(ApiError::internal()) };
                let reading = Some(Shown { format, notes: &notes, text });
                let outcome = own.outcome(&judged)?;
                Ok(json(&Item { index, name: &name, reading, outcome }))
            };
            if plan.reads_with_the_model() {
                asker.run_under(&plan, job).await
            } else {
                asker.run_patiently(job).await
            }
        }
    };
    judged.unwrap_or_else(|error| {
        json(&Item { index, name: &name, reading: None, outcome: Outcome::of(&error) })
    })
}
