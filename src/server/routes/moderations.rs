//! `POST /v1/moderations`: the verdict in the shape that moderation pipelines already read.

use std::fmt;
use std::sync::Arc;

use axum::extract::State as Extract;
use axum::routing::post;
use axum::{Extension, Json as Reply};
use futures_util::{StreamExt, stream};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::detect::{Report, Verdict};
use crate::server::access::{Caller, Role};
use crate::server::detecting::{Asker, DetectRequest, Entrance, Input, Plan};
use crate::server::error::ApiError;
use crate::server::json::Json;
use crate::server::layers::{RequestId, fresh_id};
use crate::server::router::{Need, Route};
use crate::server::state::State;

pub(super) fn route() -> Route {
    Route { path: "/v1/moderations", need: Need::Role(Role::Public), methods: post(moderations) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModerationRequest {
    input: Texts,
    #[serde(default)]
    model: Option<String>,
}

/// A text, or a list of texts or of `{"type":"text","text":...}`.
struct Texts(Vec<String>);

async fn moderations(
    Extract(state): Extract<State>,
    Extension(caller): Extension<Caller>,
    Extension(request): Extension<RequestId>,
    body: Json<ModerationRequest>,
) -> Result<Reply<Moderation>, ApiError> {
    let Json { value: ModerationRequest { input: Texts(texts), model }, room } = body;
    let most = state.limits().inputs;
    if texts.is_empty() || texts.len() > most {
        let message = format!("{} texts; give 1 to {most}", texts.len());
        return Err(ApiError::invalid("input", message));
    }
    let plan = DetectRequest::of_profile(model);
    let (plan, _) = Plan::resolve(&state, &caller, Entrance::File, plan).map_err(|error| {
        if error.code() == "unknown_profile" { error.param("model") } else { error }
    })?;
    let model = plan.names().collect();
    let figures = caller.role > Role::Public;
    let asker = Asker { state, caller, request, action: "moderate" };
    asker.charge("input", texts.len())?;
    let plan = Arc::new(plan);
    let results = texts.into_iter().map(|text| {
        let (plan, input) = (Arc::clone(&plan), Arc::new(Input::Text(text)));
        let job = move |asker: &Asker| {
            let judged = plan.judge(&input, asker)?;
            judged
                .reports
                .first()
                .map(|report| moderated(report, figures))
                .ok_or_else(ApiError::internal)
        };
        asker.run_patiently(job)
    });
    let results: Vec<_> =
        stream::iter(results).buffered(asker.state.limits().workers + 1).collect().await;
    drop(room);
    let results = results.into_iter().collect::<Result<_, ApiError>>()?;
    Ok(Reply(Moderation { id: format!("modr-{}", fresh_id()), model, results }))
}

#[derive(Serialize)]
struct Moderation {
    id: String,
    model: String,
    results: Vec<Moderated>,
}

#[derive(Serialize)]
struct Moderated {
    flagged: bool,
    categories: Category<bool>,
    category_scores: Category<f64>,
    category_applied_input_types: Category<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    greenmark: Option<Figures>,
}

/// The one category there is.
#[derive(Serialize)]
struct Category<T> {
    watermarked: T,
}

#[derive(Serialize)]
struct Figures {
    verdict: Verdict,
    z: Option<f64>,
    log10_p: f64,
    corrected_log10_p: f64,
}

fn moderated(report: &Report, figures: bool) -> Moderated {
    let flagged = report.verdict == Verdict::Watermarked;
    Moderated {
        flagged,
        categories: Category { watermarked: flagged },
        category_scores: Category { watermarked: f64::from(u8::from(flagged)) },
        category_applied_input_types: Category { watermarked: ["text"] },
        greenmark: figures.then_some(Figures {
            verdict: report.verdict,
            z: report.z,
            log10_p: report.log10_p,
            corrected_log10_p: report.corrected_log10_p,
        }),
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextsVisitor)
    }
}

/// An untagged enum would not say which item is wrong.
struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or a list of texts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Texts, E> {
        Ok(Texts(vec![text.to_owned()]))
    }

    fn visit_string<E>(self, text: String) -> Result<Texts, E> {
        Ok(Texts(vec![text]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Texts, A::Error> {
        let items: Vec<Item> = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(Texts(items.into_iter().map(|item| item.0).collect()))
    }
}

/// One text of a list.
struct Item(String);

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Part {
    Text { text: String },
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemVisitor)
    }
}

struct ItemVisitor;

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or an object of the type `text`")
    }

    fn visit_str<E>(self, text: &str) -> Result<Item, E> {
        Ok(Item(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Item, E> {
        Ok(Item(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Item, A::Error> {
        let Part::Text { text } = Part::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Item(text))
    }
}
