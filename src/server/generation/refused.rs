//! Fields of the `OpenAI` interface that this service does not do, refused by name.
//!
//! A value that asks for nothing (`null`, or what the interface documents as its default) is
//! accepted, because clients send it.

use serde_json::{Value, json};

use super::body::{Body, Message};
use super::endpoint::Endpoint;
use super::lists::Foreign;
use crate::server::error::ApiError;

/// Refuses every field that would have no effect on this route.
pub(super) fn refuse_fields(body: &Body, endpoint: Endpoint) -> Result<(), ApiError> {
    let none = || Vec::new();
    let fields = [
        ("response_format", &body.response_format, vec![json!({"type": "text"})]),
        ("suffix", &body.suffix, vec![json!("")]),
        ("tools", &body.tools, vec![json!([])]),
        ("tool_choice", &body.tool_choice, vec![json!("none"), json!("auto")]),
        ("parallel_tool_calls", &body.parallel_tool_calls, vec![json!(true), json!(false)]),
        ("functions", &body.functions, vec![json!([])]),
        ("function_call", &body.function_call, vec![json!("none"), json!("auto")]),
        ("modalities", &body.modalities, vec![json!(["text"])]),
        ("audio", &body.audio, none()),
        ("prediction", &body.prediction, none()),
        ("reasoning_effort", &body.reasoning_effort, vec![json!("none")]),
        ("verbosity", &body.verbosity, vec![json!("medium")]),
        ("service_tier", &body.service_tier, vec![json!("auto"), json!("default")]),
        ("store", &body.store, vec![json!(false)]),
        ("metadata", &body.metadata, vec![json!({})]),
        ("web_search_options", &body.web_search_options, none()),
    ];
    for (name, value, neutral) in fields {
        refuse_unless_neutral(name, value.as_ref(), &neutral)?;
    }
    let foreign: &[(&str, bool)] = match endpoint {
        Endpoint::Completions => {
            &[("messages", body.messages.is_some()), ("top_logprobs", body.top_logprobs.is_some())]
        }
        Endpoint::Chat => &[
            ("prompt", body.prompt.is_some()),
            ("echo", body.echo == Some(true)),
            ("best_of", body.best_of.is_some()),
        ],
    };
    match foreign.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(ApiError::bad_request(
            "unknown_field",
            format!(
                "{name} is no field of {}; it belongs to {}",
                endpoint.path(),
                endpoint.other().path()
            ),
        )
        .param(*name)),
        None => Ok(()),
    }
}

/// Refuses what a message holds beside its text.
pub(super) fn refuse_message_fields(place: usize, message: &Message) -> Result<(), ApiError> {
    let fields = [
        ("name", &message.name),
        ("tool_calls", &message.tool_calls),
        ("tool_call_id", &message.tool_call_id),
        ("function_call", &message.function_call),
        ("refusal", &message.refusal),
        ("audio", &message.audio),
        ("annotations", &message.annotations),
    ];
    for (name, value) in fields {
        refuse_unless_neutral(&format!("messages[{place}].{name}"), value.as_ref(), &[json!([])])?;
    }
    Ok(())
}

fn refuse_unless_neutral(
    name: &str,
    value: Option<&Foreign>,
    neutral: &[Value],
) -> Result<(), ApiError> {
    match value {
        Some(value) if !value.is_among(neutral) => Err(ApiError::bad_request(
            "unsupported_field",
            format!("{name} is not supported by this service; leave it out"),
        )
        .param(name)),
        _ => Ok(()),
    }
}
