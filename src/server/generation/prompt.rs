//! From the prompt fields of a request to ids.

use super::body::{Body, Content, Message, Prompts};
use super::endpoint::Endpoint;
use super::refused::refuse_message_fields;
use crate::engine::TextEngine;
use crate::server::error::ApiError;
use crate::text::{ChatMessage, GenerationPrompt, PromptTemplate};
use crate::token::{TokenId, check_ids};

/// A prompt ready for the model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Prompt {
    pub(super) ids: Vec<TokenId>,
    /// As text, where a reply has to repeat it.
    pub(super) echo: Option<String>,
}

/// The number of prompts, known before any is encoded.
///
/// # Errors
/// 400 when there is none.
pub(super) fn count(body: &Body, endpoint: Endpoint) -> Result<usize, ApiError> {
    let missing =
        |field: &str| ApiError::invalid(field, format!("{field}: at least one is needed"));
    match endpoint {
        Endpoint::Completions => match body.prompt.as_ref().map_or(0, Prompts::len) {
            0 => Err(missing("prompt")),
            count => Ok(count),
        },
        Endpoint::Chat if body.messages.as_ref().is_none_or(Vec::is_empty) => {
            Err(missing("messages"))
        }
        Endpoint::Chat => Ok(1),
    }
}

/// The prompts of a request.
///
/// # Errors
/// Those of the tokenizer and of the chat template; 400 naming a part that is no text.
pub(super) fn encode(
    body: &Body,
    endpoint: Endpoint,
    engine: &TextEngine,
    template: Option<&PromptTemplate>,
) -> Result<Vec<Prompt>, ApiError> {
    match endpoint {
        Endpoint::Completions => completion(body, engine),
        Endpoint::Chat => {
            let messages = messages(body.messages.as_deref().unwrap_or_default())?;
            let Some(template) = template else {
                let message = "this model has no chat template; use /v1/completions";
                return Err(ApiError::bad_request("no_chat_template", message).param("messages"));
            };
            let tokenizer = engine.tokenizer();
            let ids = template.chat_ids(tokenizer, &messages, GenerationPrompt::Add)?;
            Ok(vec![Prompt { ids, echo: None }])
        }
    }
}

fn completion(body: &Body, engine: &TextEngine) -> Result<Vec<Prompt>, ApiError> {
    let echoes = body.echo == Some(true);
    let text = |text: &String| -> Result<Prompt, ApiError> {
        Ok(Prompt { ids: engine.prompt_ids(text)?, echo: echoes.then(|| text.clone()) })
    };
    let ids = |ids: &Vec<TokenId>| -> Result<Prompt, ApiError> {
        if ids.is_empty() {
            return Err(ApiError::invalid("prompt", "prompt: a list of ids holds no id"));
        }
        check_ids(ids, engine.model().info().vocab_size)?;
        let echo = echoes.then(|| engine.tokenizer().decode_lossy(ids));
        Ok(Prompt { ids: ids.clone(), echo })
    };
    match &body.prompt {
        None => Ok(Vec::new()),
        Some(Prompts::Text(one)) => Ok(vec![text(one)?]),
        Some(Prompts::Texts(several)) => several.iter().map(text).collect(),
        Some(Prompts::Ids(one)) => Ok(vec![ids(one)?]),
        Some(Prompts::IdLists(several)) => several.iter().map(ids).collect(),
    }
}

fn messages(given: &[Message]) -> Result<Vec<ChatMessage>, ApiError> {
    given.iter().enumerate().map(|(place, message)| read(place, message)).collect()
}

fn read(place: usize, message: &Message) -> Result<ChatMessage, ApiError> {
    refuse_message_fields(place, message)?;
    let field = |name: &str| format!("messages[{place}].{name}");
    let role = match message.role.as_deref() {
        // The newer name of the same role.
        Some("developer" | "system") => "system",
        Some("user") => "user",
        Some("assistant") => "assistant",
        other => {
            let name = field("role");
            let found = other.unwrap_or("nothing");
            let message = format!(
                "{name}: {found:?} is not allowed; allowed: system, developer, user, assistant"
            );
            return Err(ApiError::invalid(name, message));
        }
    };
    let content = match &message.content {
        Some(Content::Text(text)) => text.clone(),
        Some(Content::Foreign { index, kind }) => {
            let name = field(&format!("content[{index}]"));
            let kind: String = kind.chars().take(100).collect();
            let message = format!("{name}: a part of type {kind:?} is not supported; only text is");
            return Err(ApiError::invalid(name, message));
        }
        None => {
            let name = field("content");
            let message = format!("{name}: text is needed");
            return Err(ApiError::invalid(name, message));
        }
    };
    Ok(ChatMessage { role: role.to_owned(), content })
}
