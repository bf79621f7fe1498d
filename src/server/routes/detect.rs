//! `POST /v1/detect`: a text, token ids or a list of both, held against one profile or several.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State as Extract;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::{Stream, StreamExt, stream};
use serde::Serialize;

use crate::document::page::{self, Page};
use crate::server::access::{Caller, Role};
use crate::server::detecting::{
    Asker, DetectRequest, Entrance, Form, Input, Inputs, Outcome, Plan, json, list,
};
use crate::server::error::ApiError;
use crate::server::json::Json;
use crate::server::layers::RequestId;
use crate::server::router::{Need, Route};
use crate::server::state::State;

pub(super) fn route() -> Route {
    Route { path: "/v1/detect", need: Need::Role(Role::Public), methods: post(detect) }
}

async fn detect(
    Extract(state): Extract<State>,
    Extension(caller): Extension<Caller>,
    Extension(request): Extension<RequestId>,
    body: Json<DetectRequest>,
) -> Result<Response, ApiError> {
    let Json { value, room } = body;
    let (plan, inputs) = Plan::resolve(&state, &caller, Entrance::Single, value)?;
    let asker = Asker { state, caller, request, action: "detect" };
    match inputs {
        Inputs::One(input) => {
            asker.charge("profiles", plan.names().count())?;
            let (media_type, bytes) = if plan.is_quick(&input) {
                one(&asker, &plan, &input)?
            } else {
                let plan = Arc::new(plan);
                let own = Arc::clone(&plan);
                // The body's share of the memory is given back with the text.
                let job = move |asker: &Asker| one(asker, &own, &input).inspect(|_| drop(room));
                asker.run_under(&plan, job).await?
            };
            Ok(([(CONTENT_TYPE, media_type)], bytes).into_response())
        }
        Inputs::Several(inputs) => {
            asker.charge("inputs", inputs.len().saturating_mul(plan.names().count()))?;
            Ok(([(CONTENT_TYPE, JSON)], list(items(asker, plan, inputs), room)).into_response())
        }
        Inputs::None => Err(ApiError::internal()),
    }
}

const JSON: &str = "application/json";

fn one(asker: &Asker, plan: &Plan, input: &Input) -> Result<(&'static str, Vec<u8>), ApiError> {
    let judged = plan.judge(input, asker)?;
    // A page of several profiles is that of the one that decides; its report pays for all.
    match (&plan.form, judged.reports.get(judged.joined.deciding), input) {
        (Form::Html(name), Some(report), input) => {
            let text = match input {
                Input::Text(text) => Some(text.as_str()),
                Input::Tokens(_) => None,
            };
            let page = page::render(&Page { report, text, name })?;
            Ok(("text/html; charset=utf-8", page.into_bytes()))
        }
        _ => Ok((JSON, plan.document(&judged)?)),
    }
}

/// One input of a list.
#[derive(Serialize)]
struct Item<'a> {
    index: usize,
    #[serde(flatten)]
    outcome: Outcome<'a>,
}

/// Judges the inputs of a list, some at the same time, and gives the items in their order.
fn items(
    asker: Asker,
    plan: Plan,
    inputs: Vec<Result<Input, ApiError>>,
) -> impl Stream<Item = Vec<u8>> {
    let plan = Arc::new(plan);
    let together = asker.state.limits().workers + 1;
    let items = inputs.into_iter().enumerate().map(move |(index, input)| {
        let (asker, plan) = (asker.clone(), Arc::clone(&plan));
        async move {
            let judged = match input {
                Err(error) => Err(error),
                Ok(input) => {
                    let input = Arc::new(input);
                    asker.run_patiently(move |asker| item(asker, &plan, index, &input)).await
                }
            };
            judged.unwrap_or_else(|error| json(&Item { index, outcome: Outcome::of(&error) }))
        }
    });
    stream::iter(items).buffered(together)
}

fn item(asker: &Asker, plan: &Plan, index: usize, input: &Input) -> Result<Vec<u8>, ApiError> {
    let judged = plan.judge(input, asker)?;
    Ok(json(&Item { index, outcome: plan.outcome(&judged)? }))
}
