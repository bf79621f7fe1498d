//! What is judged: a text, or token ids.

use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::server::error::ApiError;
use crate::server::json::unprocessable;
use crate::token::TokenId;

/// One thing to judge.
#[derive(Debug)]
pub(in crate::server) enum Input {
    /// A text as a reader has it.
    Text(String),
    /// Token ids of the profile's tokenizer.
    Tokens(Vec<TokenId>),
}

/// An input as it stands in a request: exactly one of both.
#[derive(Debug)]
pub(super) struct RawInput {
    text: Option<String>,
    tokens: Option<Vec<TokenId>>,
}

/// The fields of an input that is an object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    tokens: Option<Vec<TokenId>>,
}

impl RawInput {
    pub(super) fn new(text: Option<String>, tokens: Option<Vec<TokenId>>) -> Self {
        Self { text, tokens }
    }

    /// The input.
    ///
    /// # Errors
    /// 422 when nothing or two things are given.
    pub(super) fn resolve(self) -> Result<Input, ApiError> {
        match (self.text, self.tokens) {
            (Some(text), None) => Ok(Input::Text(text)),
            (None, Some(tokens)) => Ok(Input::Tokens(tokens)),
            (None, None) => {
                let message = "missing field `text` (or `tokens`)".to_owned();
                Err(unprocessable(message, Some("text".to_owned())))
            }
            (Some(_), Some(_)) => {
                Err(ApiError::invalid("tokens", "give `text` or `tokens`, not both"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for RawInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InputVisitor)
    }
}

/// An untagged enum would not say which field is wrong.
struct InputVisitor;

impl<'de> Visitor<'de> for InputVisitor {
    type Value = RawInput;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or an object with `text` or `tokens`")
    }

    fn visit_str<E>(self, text: &str) -> Result<RawInput, E> {
        Ok(RawInput { text: Some(text.to_owned()), tokens: None })
    }

    fn visit_string<E>(self, text: String) -> Result<RawInput, E> {
        Ok(RawInput { text: Some(text), tokens: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawInput, A::Error> {
        let Fields { text, tokens } = Fields::deserialize(MapAccessDeserializer::new(map))?;
        Ok(RawInput { text, tokens })
    }
}
