//! The fields of a generation request, for both routes, as JSON has them.
//!
//! One list serves `/v1/completions` and `/v1/chat/completions`, so that a sampler is added once.
//! A field that belongs to the other route, or that this service knows and does not do, is refused
//! by name in [`super::refused`]; any other unknown field by the reader of bodies.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Number, Value};

use crate::sample::{Bias, DryOptions, MirostatOptions, Order, SamplingOptions, XtcOptions};
use crate::token::TokenId;

/// The body of a request. `docs/serve.md` says what each field does.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the names are those of the OpenAI interface and of the chain")]
pub struct Body {
    pub model: Option<String>,
    pub prompt: Option<Prompts>,
    pub messages: Option<Vec<Message>>,

    pub watermark: Option<bool>,
    pub profile: Option<String>,

    pub n: Option<usize>,
    pub best_of: Option<usize>,
    pub seed: Option<Number>,
    pub max_tokens: Option<usize>,
    pub max_completion_tokens: Option<usize>,
    pub stop: Option<Stop>,
    pub echo: Option<bool>,
    pub stream: Option<bool>,
    pub stream_options: Option<StreamOptions>,
    pub logprobs: Option<Logprobs>,
    pub top_logprobs: Option<usize>,
    pub user: Option<String>,

    pub temperature: Option<f64>,
    pub top_k: Option<i64>,
    pub top_p: Option<f64>,
    pub min_p: Option<f64>,
    pub typical_p: Option<f64>,
    pub epsilon_cutoff: Option<f64>,
    pub eta_cutoff: Option<f64>,
    pub top_n_sigma: Option<f64>,
    pub repetition_penalty: Option<f64>,
    pub presence_penalty: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub penalty_last_n: Option<usize>,
    pub no_repeat_ngram_size: Option<usize>,
    pub dry: Option<DryOptions>,
    pub xtc: Option<XtcOptions>,
    pub mirostat: Option<MirostatOptions>,
    pub logit_bias: Option<BTreeMap<TokenId, Bias>>,
    pub bad_words: Option<Vec<Vec<TokenId>>>,
    pub allowed_tokens: Option<Vec<TokenId>>,
    pub min_tokens: Option<usize>,
    pub min_tokens_to_keep: Option<usize>,
    pub order: Option<Order>,

    pub response_format: Option<Value>,
    pub suffix: Option<Value>,
    pub tools: Option<Value>,
    pub tool_choice: Option<Value>,
    pub parallel_tool_calls: Option<Value>,
    pub functions: Option<Value>,
    pub function_call: Option<Value>,
    pub modalities: Option<Value>,
    pub audio: Option<Value>,
    pub prediction: Option<Value>,
    pub reasoning_effort: Option<Value>,
    pub verbosity: Option<Value>,
    pub service_tier: Option<Value>,
    pub store: Option<Value>,
    pub metadata: Option<Value>,
    pub web_search_options: Option<Value>,
}

/// The prompts of `/v1/completions`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "a string, a list of strings, a list of token ids or a list of such lists"
)]
pub enum Prompts {
    /// One text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// The ids of one prompt.
    Ids(Vec<TokenId>),
    /// The ids of several prompts.
    IdLists(Vec<Vec<TokenId>>),
}

impl Prompts {
    /// The number of prompts.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Text(_) | Self::Ids(_) => 1,
            Self::Texts(texts) => texts.len(),
            Self::IdLists(lists) => lists.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A message of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the names are those of the OpenAI interface")]
pub struct Message {
    pub role: Option<String>,
    pub content: Option<Content>,
    pub name: Option<Value>,
    pub tool_calls: Option<Value>,
    pub tool_call_id: Option<Value>,
    pub function_call: Option<Value>,
    pub refusal: Option<Value>,
    pub audio: Option<Value>,
    pub annotations: Option<Value>,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a string or a list of content parts")]
pub enum Content {
    /// Text.
    Text(String),
    /// Parts.
    Parts(Vec<Part>),
}

/// A part of a message. Only parts of type `text` are read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Part {
    /// `text`; any other is refused by name.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text.
    pub text: Option<String>,
}

/// Where a text ends.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a string or a list of strings")]
pub enum Stop {
    /// At one string.
    One(String),
    /// At any of several.
    Many(Vec<String>),
}

/// Whether log-probabilities are asked for: a number for `/v1/completions`, `true` or `false` for
/// `/v1/chat/completions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a whole number (completions) or true or false (chat)")]
pub enum Logprobs {
    /// The form of chat.
    Flag(bool),
    /// The form of completions: so many alternatives.
    Count(usize),
}

/// What a stream holds beside the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StreamOptions {
    /// A last chunk with the number of tokens.
    pub include_usage: Option<bool>,
    /// Padding against traffic analysis; only `false` is accepted.
    pub include_obfuscation: Option<bool>,
}

impl Body {
    /// The sampling parameters alone.
    #[must_use]
    pub fn sampling(&self) -> SamplingOptions {
        // The literal names every option, so one that is forgotten does not compile.
        SamplingOptions {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            typical_p: self.typical_p,
            epsilon_cutoff: self.epsilon_cutoff,
            eta_cutoff: self.eta_cutoff,
            top_n_sigma: self.top_n_sigma,
            repetition_penalty: self.repetition_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            penalty_last_n: self.penalty_last_n,
            no_repeat_ngram_size: self.no_repeat_ngram_size,
            dry: self.dry.clone(),
            xtc: self.xtc,
            mirostat: self.mirostat,
            logit_bias: self.logit_bias.clone(),
            bad_words: self.bad_words.clone(),
            allowed_tokens: self.allowed_tokens.clone(),
            min_tokens: self.min_tokens,
            min_tokens_to_keep: self.min_tokens_to_keep,
            order: self.order.clone(),
        }
    }
}
