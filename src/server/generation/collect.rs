//! From the deliveries of the thread to a reply, whole or in pieces.
//!
//! Both hold the receiver in what the connection polls, so that a client that leaves drops it, and
//! its texts leave the batch.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::logprobs::{Tokens, logprobs};
use super::queue::Delivery;
use super::reply::{Done, Envelope};
use super::trace::Trace;
use crate::engine::{Alternative, Generation, StepRecord, TextEngine};
use crate::error::Error;
use crate::server::error::ApiError;
use crate::server::layers;

/// A reply on its way.
pub(super) struct Collector {
    pub(super) deliveries: UnboundedReceiver<Delivery>,
    pub(super) envelope: Envelope,
    pub(super) echoes: Vec<Option<String>>,
    pub(super) engine: Arc<TextEngine>,
    pub(super) trace: Trace,
}

impl Collector {
    async fn receive(&mut self) -> Option<Delivery> {
        let delivery = self.deliveries.recv().await?;
        self.trace.see(&delivery);
        Some(delivery)
    }

    /// Waits for every text and gives the reply.
    pub(super) async fn whole(mut self) -> Result<Value, ApiError> {
        let mut finished: Vec<Option<Arc<Generation>>> = self.echoes.iter().map(|_| None).collect();
        while finished.iter().any(Option::is_none) {
            match self.receive().await {
                Some(Delivery::Text { .. }) => {}
                Some(Delivery::Finished { index, generation, .. }) => {
                    if let Some(place) = finished.get_mut(index) {
                        *place = Some(generation.into());
                    }
                }
                Some(Delivery::Failed(error)) => return Err(failure(error)),
                None => return Err(lost()),
            }
        }
        let mut texts = Vec::with_capacity(finished.len());
        for (index, generation) in finished.into_iter().flatten().enumerate() {
            texts.push(self.judge(index, generation).await);
        }
        Ok(self.envelope.whole(&texts, &self.echoes, self.engine.tokenizer()))
    }

    /// Waits for the first delivery, so that a request that cannot be served gets its status, and
    /// gives the rest in pieces.
    pub(super) async fn stream(mut self, includes_usage: bool) -> Result<Response, ApiError> {
        let first = match self.receive().await {
            Some(Delivery::Failed(error)) => return Err(failure(error)),
            Some(first) => first,
            None => return Err(lost()),
        };
        let texts = self.echoes.iter().map(|echo| Written::after(echo.as_deref())).collect();
        let mut pieces = Pieces {
            finished: self.echoes.iter().map(|_| None).collect(),
            texts,
            includes_usage,
            pending: VecDeque::new(),
            ended: false,
            collector: self,
        };
        pieces.open();
        pieces.take(first).await;
        let events = futures_util::stream::unfold(pieces, |mut pieces| async move {
            let data = pieces.next().await?;
            Some((Ok::<_, Infallible>(Event::default().data(data)), pieces))
        });
        Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
    }

    /// Adds what a detector could find in a text, and leaves its trace.
    async fn judge(&mut self, index: usize, generation: Arc<Generation>) -> Done {
        let expected = match &self.envelope.mark {
            None => None,
            Some(profile) => {
                let (profile, text) = (Arc::clone(profile), Arc::clone(&generation));
                // A prediction that finds no thread free is left out; the text is not lost for it.
                self.trace
                    .state()
                    .pool()
                    .run(move || profile.mark.expected(&text))
                    .await
                    .ok()
                    .flatten()
            }
        };
        self.trace.record(index, &generation);
        Done { generation, expected }
    }
}

impl Drop for Collector {
    /// What was delivered and not yet taken was generated as well.
    fn drop(&mut self) {
        while let Ok(delivery) = self.deliveries.try_recv() {
            self.trace.see(&delivery);
        }
    }
}

/// What has been written of a text.
struct Written {
    /// The last stretch of text, in which tokens that are not written yet begin.
    text: String,
    /// Bytes of the text before that stretch.
    bytes_before: usize,
    /// Characters of the reply before that stretch.
    characters_before: usize,
    steps: usize,
}

impl Written {
    fn after(echo: Option<&str>) -> Self {
        let characters_before = echo.map_or(0, |echo| echo.chars().count());
        Self { text: String::new(), bytes_before: 0, characters_before, steps: 0 }
    }
}

/// A reply in pieces.
struct Pieces {
    collector: Collector,
    includes_usage: bool,
    texts: Vec<Written>,
    finished: Vec<Option<Arc<Generation>>>,
    pending: VecDeque<String>,
    ended: bool,
}

impl Pieces {
    fn open(&mut self) {
        for index in 0..self.texts.len() {
            let echo = self.collector.echoes[index].as_deref();
            if let Some(choices) = self.collector.envelope.opening(index, echo) {
                self.push(&choices);
            }
        }
    }

    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(piece) = self.pending.pop_front() {
                return Some(piece);
            }
            if self.ended {
                return None;
            }
            match self.collector.receive().await {
                Some(delivery) => self.take(delivery).await,
                None => self.fail(&lost()),
            }
        }
    }

    async fn take(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Text { index, text, steps, alternatives } => {
                self.write(index, &text, &steps, &alternatives);
            }
            Delivery::Finished { index, text, generation } => {
                let from = self.texts.get(index).map_or(0, |written| written.steps);
                let steps = generation.steps.get(from..).unwrap_or_default();
                let alternatives = generation.alternatives.get(from..).unwrap_or_default();
                self.write(index, &text, steps, alternatives);
                let ending = self.collector.envelope.ending(index, generation.finish.reason());
                if let Some(place) = self.finished.get_mut(index) {
                    *place = Some(generation.into());
                }
                if self.finished.iter().all(Option::is_some) {
                    self.close(&ending).await;
                } else {
                    self.push(&ending);
                }
            }
            Delivery::Failed(error) => self.fail(&failure(error)),
        }
    }

    /// A piece of a text, with the tokens that begin in it.
    fn write(
        &mut self,
        index: usize,
        text: &str,
        steps: &[StepRecord],
        alternatives: &[Vec<Alternative>],
    ) {
        let Some(written) = self.texts.get_mut(index) else { return };
        if text.is_empty() && steps.is_empty() {
            return;
        }
        let envelope = &self.collector.envelope;
        let probabilities = envelope.has_logprobs.then(|| {
            written.text.push_str(text);
            let shift = |step: &StepRecord| StepRecord {
                offset: step.offset.saturating_sub(written.bytes_before),
                ..*step
            };
            let steps: Vec<StepRecord> = steps.iter().map(shift).collect();
            let tokens = Tokens {
                steps: &steps,
                alternatives,
                text: &written.text,
                characters_before: written.characters_before,
            };
            logprobs(envelope.endpoint, tokens, self.collector.engine.tokenizer())
        });
        written.steps += steps.len();
        // Tokens that come later begin in this text or behind it: its end is where one may begin
        // inside the last character.
        if let Some((last, _)) = written.text.char_indices().next_back() {
            let rest = written.text.split_off(last);
            written.characters_before += written.text.chars().count();
            written.bytes_before += written.text.len();
            written.text = rest;
        }
        let choices = envelope.piece(index, text, probabilities.as_ref());
        self.push(&choices);
    }

    /// The end of the last text and of the stream.
    async fn close(&mut self, ending: &Value) {
        let mut texts = Vec::with_capacity(self.finished.len());
        let finished = std::mem::take(&mut self.finished);
        for (index, generation) in finished.into_iter().flatten().enumerate() {
            texts.push(self.collector.judge(index, generation).await);
        }
        let envelope = &self.collector.envelope;
        let (greenmark, usage) = (envelope.greenmark(&texts), envelope.usage(&texts));
        if self.includes_usage {
            self.push(ending);
            let mut last = self.collector.envelope.chunk(&json!([]));
            last["usage"] = usage;
            last["greenmark"] = greenmark;
            self.pending.push_back(last.to_string());
        } else {
            let mut last = self.collector.envelope.chunk(ending);
            last["greenmark"] = greenmark;
            self.pending.push_back(last.to_string());
        }
        self.pending.push_back("[DONE]".to_owned());
        self.ended = true;
    }

    fn push(&mut self, choices: &Value) {
        let mut chunk = self.collector.envelope.chunk(choices);
        if self.includes_usage {
            chunk["usage"] = Value::Null;
        }
        self.pending.push_back(chunk.to_string());
    }

    /// The status was sent long ago; clients read an `error` in place of a chunk.
    fn fail(&mut self, error: &ApiError) {
        self.pending.push_back(error.body().to_string());
        self.ended = true;
    }
}

/// The reply to texts that the engine refused or could not finish.
fn failure(error: Arc<Error>) -> ApiError {
    match Arc::try_unwrap(error) {
        Ok(error) => error.into(),
        // A fault of a whole pass belongs to everybody in it.
        Err(shared) => {
            layers::log(&format!("internal error: {shared}"));
            ApiError::internal()
        }
    }
}

/// The reply when the thread ended or lost the texts.
fn lost() -> ApiError {
    layers::log("internal error: the generator's thread lost a request");
    ApiError::internal()
}
