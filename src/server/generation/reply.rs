//! The replies in the shapes of the OpenAI interface, with what is said of the mark beside them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::GenerationProfile;
use super::endpoint::Endpoint;
use super::logprobs::{Tokens, logprobs};
use crate::detect::entropy::Detectability;
use crate::engine::Generation;
use crate::text::Tokenizer;

/// What is the same in every part of a reply.
pub(super) struct Envelope {
    pub(super) endpoint: Endpoint,
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) fingerprint: String,
    pub(super) mark: Option<Arc<GenerationProfile>>,
    /// Whether log-probabilities were asked for.
    pub(super) has_logprobs: bool,
    pub(super) prompt_tokens: usize,
}

/// A text that is done.
pub(super) struct Done {
    pub(super) generation: Arc<Generation>,
    /// How well its mark can be told.
    pub(super) expected: Option<Detectability>,
}

impl Envelope {
    /// The whole reply.
    pub(super) fn whole(
        &self,
        texts: &[Done],
        echoes: &[Option<String>],
        tokenizer: &Tokenizer,
    ) -> Value {
        let choices: Vec<Value> = texts
            .iter()
            .zip(echoes)
            .enumerate()
            .map(|(index, (text, echo))| {
                self.choice(index, &text.generation, echo.as_deref(), tokenizer)
            })
            .collect();
        json!({
            "id": self.id,
            "object": self.endpoint.object(),
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": choices,
            "usage": self.usage(texts),
            "greenmark": self.greenmark(texts),
        })
    }

    fn choice(
        &self,
        index: usize,
        generation: &Generation,
        echo: Option<&str>,
        tokenizer: &Tokenizer,
    ) -> Value {
        let echo = echo.unwrap_or_default();
        let tokens = Tokens {
            steps: &generation.steps,
            alternatives: &generation.alternatives,
            text: &generation.text,
            characters_before: echo.chars().count(),
        };
        let logprobs = self.has_logprobs.then(|| logprobs(self.endpoint, tokens, tokenizer));
        let finish = generation.finish.reason();
        match self.endpoint {
            Endpoint::Completions => json!({
                "index": index,
                "text": format!("{echo}{}", generation.text),
                "logprobs": logprobs,
                "finish_reason": finish,
            }),
            Endpoint::Chat => json!({
                "index": index,
                "message": {"role": "assistant", "content": generation.text, "refusal": null},
                "logprobs": logprobs,
                "finish_reason": finish,
            }),
        }
    }

    /// A chunk of a stream.
    pub(super) fn chunk(&self, choices: &Value) -> Value {
        json!({
            "id": self.id,
            "object": self.endpoint.chunk_object(),
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": choices,
        })
    }

    /// A piece of one text, as the choices of a chunk.
    pub(super) fn piece(&self, index: usize, text: &str, logprobs: Option<Value>) -> Value {
        match self.endpoint {
            Endpoint::Completions => json!([{
                "index": index, "text": text, "logprobs": logprobs, "finish_reason": null,
            }]),
            Endpoint::Chat => json!([{
                "index": index, "delta": {"content": text}, "logprobs": logprobs,
                "finish_reason": null,
            }]),
        }
    }

    /// The beginning of one text: the role for chat, the prompt where it is repeated.
    pub(super) fn opening(&self, index: usize, echo: Option<&str>) -> Option<Value> {
        match (self.endpoint, echo) {
            (Endpoint::Completions, None) => None,
            (Endpoint::Completions, Some(echo)) => Some(self.piece(index, echo, None)),
            (Endpoint::Chat, _) => Some(json!([{
                "index": index, "delta": {"role": "assistant", "content": ""}, "logprobs": null,
                "finish_reason": null,
            }])),
        }
    }

    /// The end of one text.
    pub(super) fn ending(&self, index: usize, finish: &str) -> Value {
        match self.endpoint {
            Endpoint::Completions => json!([{
                "index": index, "text": "", "logprobs": null, "finish_reason": finish,
            }]),
            Endpoint::Chat => json!([{
                "index": index, "delta": {}, "logprobs": null, "finish_reason": finish,
            }]),
        }
    }

    /// The numbers of tokens; a prompt counts once whatever `n` is, a text with the tokens that a
    /// stop string cut away.
    pub(super) fn usage(&self, texts: &[Done]) -> Value {
        let completion: usize = texts.iter().map(|text| text.generation.drawn).sum();
        json!({
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.prompt_tokens + completion,
        })
    }

    /// Whether and with what the texts are marked, and how well each can be told, in the order of
    /// the choices.
    pub(super) fn greenmark(&self, texts: &[Done]) -> Value {
        let Some(GenerationProfile { name, mark }) = self.mark.as_deref() else {
            return json!({"watermarked": false});
        };
        let key = mark.profile().key();
        json!({
            "watermarked": true,
            "profile": name,
            "key_id": key.id,
            "key_fingerprint": key.fingerprint.to_string(),
            "expected": texts.iter().map(|text| text.expected).collect::<Vec<_>>(),
        })
    }
}
