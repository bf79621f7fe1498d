//! The fields of a generation request, for both routes, as JSON has them.
//!
//! One list serves `/v1/completions` and `/v1/chat/completions`, so that a sampler is added once.
//! A field that belongs to the other route, or that this service knows and does not do, is refused
//! by name in [`super::refused`]; any other unknown field by the reader of bodies.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Number;

use super::lists::Foreign;
use super::lists::MAX_MESSAGES;
use super::lists::MAX_SEQUENCES;
use super::lists::at_most;
use super::lists::biases;
use crate::sample::{Bias, DryOptions, MirostatOptions, Order, SamplingOptions, XtcOptions};
use crate::token::TokenId;

/// The body of a request. `docs/serve.md` says what each field does.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Body {
    pub(super) model: Option<String>,
    pub(super) prompt: Option<Prompts>,
    #[serde(deserialize_with = "at_most::<MAX_MESSAGES, _, _>")]
    pub(super) messages: Option<Vec<Message>>,

    pub(super) watermark: Option<bool>,
    pub(super) profile: Option<String>,

    pub(super) n: Option<usize>,
    pub(super) best_of: Option<usize>,
    pub(super) seed: Option<Number>,
    pub(super) max_tokens: Option<usize>,
    pub(super) max_completion_tokens: Option<usize>,
    pub(super) stop: Option<Stop>,
    pub(super) echo: Option<bool>,
    pub(super) stream: Option<bool>,
    pub(super) stream_options: Option<StreamOptions>,
    pub(super) logprobs: Option<Logprobs>,
    pub(super) top_logprobs: Option<usize>,
    pub(super) user: Option<String>,

    pub(super) temperature: Option<f64>,
    pub(super) top_k: Option<i64>,
    pub(super) top_p: Option<f64>,
    pub(super) min_p: Option<f64>,
    pub(super) typical_p: Option<f64>,
    pub(super) epsilon_cutoff: Option<f64>,
    pub(super) eta_cutoff: Option<f64>,
    pub(super) top_n_sigma: Option<f64>,
    pub(super) repetition_penalty: Option<f64>,
    pub(super) presence_penalty: Option<f64>,
    pub(super) frequency_penalty: Option<f64>,
    pub(super) penalty_last_n: Option<usize>,
    pub(super) no_repeat_ngram_size: Option<usize>,
    pub(super) dry: Option<DryOptions>,
    pub(super) xtc: Option<XtcOptions>,
    pub(super) mirostat: Option<MirostatOptions>,
    #[serde(deserialize_with = "biases")]
    pub(super) logit_bias: Option<BTreeMap<TokenId, Bias>>,
    #[serde(deserialize_with = "at_most::<MAX_SEQUENCES, _, _>")]
    pub(super) bad_words: Option<Vec<Vec<TokenId>>>,
    pub(super) allowed_tokens: Option<Vec<TokenId>>,
    pub(super) min_tokens: Option<usize>,
    pub(super) min_tokens_to_keep: Option<usize>,
    pub(super) order: Option<Order>,

    pub(super) response_format: Option<Foreign>,
    pub(super) suffix: Option<Foreign>,
    pub(super) tools: Option<Foreign>,
    pub(super) tool_choice: Option<Foreign>,
    pub(super) parallel_tool_calls: Option<Foreign>,
    pub(super) functions: Option<Foreign>,
    pub(super) function_call: Option<Foreign>,
    pub(super) modalities: Option<Foreign>,
    pub(super) audio: Option<Foreign>,
    pub(super) prediction: Option<Foreign>,
    pub(super) reasoning_effort: Option<Foreign>,
    pub(super) verbosity: Option<Foreign>,
    pub(super) service_tier: Option<Foreign>,
    pub(super) store: Option<Foreign>,
    pub(super) metadata: Option<Foreign>,
    pub(super) web_search_options: Option<Foreign>,
}

/// The prompts of `/v1/completions`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Prompts {
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
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Text(_) | Self::Ids(_) => 1,
            Self::Texts(texts) => texts.len(),
            Self::IdLists(lists) => lists.len(),
        }
    }

    /// The number of ids that are given as ids.
    pub(super) fn ids(&self) -> usize {
        match self {
            Self::Text(_) | Self::Texts(_) => 0,
            Self::Ids(ids) => ids.len(),
            Self::IdLists(lists) => lists.iter().map(Vec::len).sum(),
        }
    }
}

/// A message of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Message {
    pub(super) role: Option<String>,
    pub(super) content: Option<Content>,
    pub(super) name: Option<Foreign>,
    pub(super) tool_calls: Option<Foreign>,
    pub(super) tool_call_id: Option<Foreign>,
    pub(super) function_call: Option<Foreign>,
    pub(super) refusal: Option<Foreign>,
    pub(super) audio: Option<Foreign>,
    pub(super) annotations: Option<Foreign>,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    /// Text; that of parts is joined by line feeds.
    Text(String),
    /// A list with a part that is no text.
    Foreign {
        /// Its place in the list.
        index: usize,
        /// Its type.
        kind: String,
    },
}

/// A part of a message. Only parts of type `text` are read, and those have no other fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Part {
    /// `text`; any other is refused by name.
    pub(super) kind: String,
    /// The text.
    pub(super) text: Option<String>,
}

/// Where a text ends: at any of some strings.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stop {
    /// The first of them, as many as may be given.
    pub(super) strings: Vec<String>,
    /// How many were given.
    pub(super) given: usize,
}

/// Whether log-probabilities are asked for: a number for `/v1/completions`, `true` or `false` for
/// `/v1/chat/completions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logprobs {
    /// The form of chat.
    Flag(bool),
    /// The form of completions: so many alternatives.
    Count(usize),
}

/// What a stream holds beside the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StreamOptions {
    /// A last chunk with the number of tokens.
    pub(super) include_usage: Option<bool>,
    /// Padding against traffic analysis; only `false` is accepted.
    pub(super) include_obfuscation: Option<bool>,
}

impl Body {
    /// The sampling parameters alone.
    pub(super) fn sampling(&self) -> SamplingOptions {
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
