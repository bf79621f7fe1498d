//! The log-probabilities of a reply, in the two forms of the OpenAI interface.
//!
//! All of them are the model's own, before any sampling parameter and before the mark: those of
//! the marked distribution would tell which tokens are green, and so give the key's lists away.

use serde_json::{Map, Value, json};

use super::endpoint::Endpoint;
use crate::engine::{Alternative, StepRecord};
use crate::text::Tokenizer;
use crate::token::TokenId;

/// What JSON gets for a probability of 0.
const LEAST: f64 = -9999.0;

/// Tokens with what is known of them.
#[derive(Clone, Copy)]
pub(super) struct Tokens<'a> {
    pub(super) steps: &'a [StepRecord],
    /// One entry per step, or empty.
    pub(super) alternatives: &'a [Vec<Alternative>],
    /// The text as far as it is written; the steps begin in it.
    pub(super) text: &'a str,
    /// Characters before `text` in the reply.
    pub(super) characters_before: usize,
}

/// The log-probabilities of `tokens` in the form of the route.
pub(super) fn logprobs(endpoint: Endpoint, tokens: Tokens<'_>, tokenizer: &Tokenizer) -> Value {
    match endpoint {
        Endpoint::Completions => of_completion(tokens, tokenizer),
        Endpoint::Chat => of_chat(tokens, tokenizer),
    }
}

fn of_completion(tokens: Tokens<'_>, tokenizer: &Tokenizer) -> Value {
    let Tokens { steps, alternatives, text, characters_before } = tokens;
    let mut place = Place { text, bytes: 0, characters: characters_before };
    let top = (!alternatives.is_empty()).then(|| {
        let each = steps.iter().zip(alternatives).map(|(step, alternatives)| {
            let entry = |id, logprob| (name(tokenizer, id), json!(finite(logprob)));
            let mut map: Map<String, Value> =
                alternatives.iter().map(|a| entry(a.token, a.raw_logprob)).collect();
            // The token drawn is always there, one entry more when it is none of the best.
            map.extend([entry(step.token, step.raw_logprob)]);
            map
        });
        each.collect::<Vec<_>>()
    });
    json!({
        "tokens": steps.iter().map(|step| name(tokenizer, step.token)).collect::<Vec<_>>(),
        "token_logprobs": steps.iter().map(|step| finite(step.raw_logprob)).collect::<Vec<_>>(),
        "top_logprobs": top,
        "text_offset": steps.iter().map(|step| place.of(step.offset)).collect::<Vec<_>>(),
    })
}

fn of_chat(tokens: Tokens<'_>, tokenizer: &Tokenizer) -> Value {
    let entry = |id: TokenId, logprob: f32| {
        json!({
            "token": name(tokenizer, id),
            "logprob": finite(logprob),
            "bytes": tokenizer.token_bytes(id).unwrap_or_default(),
        })
    };
    let content: Vec<Value> = tokens
        .steps
        .iter()
        .enumerate()
        .map(|(index, step)| {
            let listed = tokens.alternatives.get(index).map_or(&[][..], Vec::as_slice);
            let top = listed.iter().map(|a| entry(a.token, a.raw_logprob)).collect();
            let mut value = entry(step.token, step.raw_logprob);
            value["top_logprobs"] = Value::Array(top);
            value
        })
        .collect();
    json!({"content": content, "refusal": null})
}

/// A token as text; one that is no text of its own as `bytes:` with its bytes in hexadecimal, and
/// a control token by its name in the vocabulary.
fn name(tokenizer: &Tokenizer, id: TokenId) -> String {
    let bytes = tokenizer.token_bytes(id).unwrap_or_default();
    if bytes.is_empty() {
        return tokenizer.piece_text(id).map_or_else(|| format!("id:{id}"), str::to_owned);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let digits = bytes.iter().map(|byte| format!("\\x{byte:02x}"));
            format!("bytes:{}", digits.collect::<String>())
        }
    }
}

fn finite(logprob: f32) -> f64 {
    f64::from(logprob).max(LEAST)
}

/// Character places of ascending byte places.
struct Place<'a> {
    text: &'a str,
    bytes: usize,
    characters: usize,
}

impl Place<'_> {
    fn of(&mut self, byte: usize) -> usize {
        // A token may begin inside a character; it stands where the character does.
        let byte = self.text.floor_char_boundary(byte.max(self.bytes));
        if let Some(passed) = self.text.get(self.bytes..byte) {
            self.characters += passed.chars().count();
            self.bytes = byte;
        }
        self.characters
    }
}
