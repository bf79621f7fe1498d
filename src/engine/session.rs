//! The decode loop: any number of requests step together through one model.
//!
//! A request joins and leaves between steps and gets exactly the tokens it would get alone: rows
//! of a batch never influence each other, and a token's noise depends on the request's seed,
//! sample index and step only. On a device that is so with [`super::BatchShape::Fixed`].
//!
//! Where the model computes on a device, tokens are drawn there too ([`draw`]); this file knows
//! of it only what a request keeps.

mod draw;

use std::sync::Arc;
use std::time::{Duration, Instant};

use draw::{Place, Sampler};
use rayon::prelude::*;

use crate::detect::entropy::{Chances, GreenListBias};
use crate::engine::generation::{Alternative, Finish, Generation, StepRecord, Timing, most_likely};
use crate::engine::{KvCache, LogitsAt, Model, Sequence};
use crate::error::{Error, Result};
use crate::sample::{Chain, Decoding, Draw, History, Outcome, Scratch};
use crate::scheme::{Greedy, Marker, Step};
use crate::text::{StopMatcher, StopOutput, StreamDecoder, Tokenizer};
use crate::token::{TokenId, check_ids};

/// Longest piece of a prompt that one step takes.
const PROMPT_CHUNK: usize = 256;

/// What to generate.
#[derive(Clone, Debug)]
pub struct Request {
    /// Prompt ids; not empty.
    pub prompt: Vec<TokenId>,
    /// The sampling chain.
    pub chain: Arc<Chain>,
    /// The mark; `None` samples without one.
    pub marker: Option<Marker>,
    /// Seed of the draw.
    pub seed: u64,
    /// Which of the request's samples this is.
    pub sample: u32,
    /// Most new tokens; at least 1.
    pub max_tokens: usize,
    /// Strings that end the text.
    pub stop: Vec<String>,
    /// Ids that end the text.
    pub end_ids: Vec<TokenId>,
    /// What is measured beside the tokens.
    pub observe: Observe,
}

/// What is measured at each step; it changes no token.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observe {
    /// The chances that a mark of this bias has at each step of a marked request; `None` for
    /// schemes without a green list. They need the whole distribution on the host, so where tokens
    /// are drawn on a device they are not measured.
    pub chances: Option<GreenListBias>,
    /// So many of the most likely tokens are listed at each step, under the model's own
    /// distribution. A request that asks for them is drawn on the host, with the same result.
    pub alternatives: usize,
}

/// The handle of a request within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(u64);

/// What a step brought for one request.
#[derive(Clone, Debug)]
pub enum Event {
    /// Text that can no longer change.
    Text(RequestId, String),
    /// The request is done and has left the session.
    Finished(RequestId, Box<Generation>),
    /// The request failed and has left the session; the others go on.
    Failed(RequestId, Arc<Error>),
}

/// The tokens of a request under way.
#[derive(Clone, Copy, Debug)]
pub struct Drawn<'a> {
    /// One entry per token.
    pub steps: &'a [StepRecord],
    /// One entry per token when [`Observe::alternatives`] asked for them, else empty.
    pub alternatives: &'a [Vec<Alternative>],
}

/// Requests that step together.
#[derive(Debug)]
pub struct Session<'a> {
    model: &'a Model,
    tokenizer: &'a Tokenizer,
    slots: Vec<Slot<'a>>,
    next: u64,
    prompt_chunk: usize,
    sampler: Sampler,
}

#[derive(Debug)]
struct Slot<'a> {
    id: RequestId,
    request: Request,
    cache: KvCache,
    history: History,
    place: Place,
    scratch: Scratch,
    /// Prompt ids that the model has seen.
    seen: usize,
    decoder: StreamDecoder<'a>,
    stop: StopMatcher,
    text: String,
    /// Length of the decoded text, what a stop string may still hold back included.
    decoded: usize,
    records: Vec<StepRecord>,
    /// One entry per record when they were asked for.
    alternatives: Vec<Vec<Alternative>>,
    /// Forward passes since the prompt was read.
    passes: usize,
    timing: Timing,
}

impl<'a> Session<'a> {
    /// A session without requests.
    #[must_use]
    pub fn new(model: &'a Model, tokenizer: &'a Tokenizer) -> Self {
        let sampler = Sampler::of(model);
        Self { model, tokenizer, slots: Vec::new(), next: 0, prompt_chunk: PROMPT_CHUNK, sampler }
    }

    /// With prompts read in pieces of at most `tokens` ids (at least 1), so that a long prompt
    /// does not hold up the other requests. It changes no bit of the result.
    #[must_use]
    pub fn with_prompt_chunk(mut self, tokens: usize) -> Self {
        self.prompt_chunk = tokens.max(1);
        self
    }

    /// Number of requests under way.
    #[must_use]
    pub fn active(&self) -> usize {
        self.slots.len()
    }

    /// Lets a request join.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an empty prompt, an empty stop string, no tokens asked for, or a
    /// scheme that greedy decoding cannot carry; [`Error::TokenOutOfRange`];
    /// [`Error::ContextLength`] when prompt and new tokens do not fit the model;
    /// [`Error::Unsupported`] for a chain that the device's sampler does not have.
    pub fn add(&mut self, request: Request) -> Result<RequestId> {
        let info = self.model.info();
        check_ids(&request.prompt, info.vocab_size)?;
        if request.prompt.is_empty() {
            return Err(Error::parameter("prompt", "no tokens", "at least one token"));
        }
        if request.max_tokens == 0 {
            return Err(Error::parameter("max_tokens", 0, "at least 1"));
        }
        let needed = request.prompt.len().saturating_add(request.max_tokens);
        if needed > info.context_length {
            return Err(Error::ContextLength {
                prompt: request.prompt.len(),
                requested: request.max_tokens,
                context: info.context_length,
            });
        }
        let refused =
            request.marker.as_ref().is_some_and(|m| m.scheme().greedy() == Greedy::Refused);
        if refused && request.chain.decoding() == Decoding::Greedy {
            return Err(Error::parameter(
                "temperature",
                0,
                "a temperature of at least 1e-5 with this scheme: its mark lives in the draw, and \
                 greedy decoding has none",
            ));
        }
        let place = self.sampler.place(&request)?;
        let id = RequestId(self.next);
        self.next += 1;
        self.slots.push(Slot {
            id,
            // The last new token is never fed back.
            cache: self.model.new_cache(needed - 1)?,
            history: History::new(&request.prompt),
            place,
            scratch: Scratch::default(),
            seen: 0,
            decoder: StreamDecoder::new(self.tokenizer),
            stop: StopMatcher::new(request.stop.iter().cloned())?,
            text: String::new(),
            decoded: 0,
            records: Vec::new(),
            alternatives: Vec::new(),
            passes: 0,
            timing: Timing::default(),
            request,
        });
        Ok(id)
    }

    /// What is known of the tokens that a request under way has drawn so far; `None` when it has
    /// left. Text that is held back for a stop string may still take the last of them away.
    #[must_use]
    pub fn drawn(&self, id: RequestId) -> Option<Drawn<'_>> {
        let slot = self.slots.iter().find(|slot| slot.id == id)?;
        Some(Drawn { steps: &slot.records, alternatives: &slot.alternatives })
    }

    /// Lets a request leave before its end.
    pub fn cancel(&mut self, id: RequestId) {
        self.slots.retain(|slot| slot.id != id);
    }

    /// One forward pass for every request, and one token for each whose prompt has been read.
    ///
    /// # Errors
    /// Those of the model and the device; every request then leaves the session, because some may
    /// have gone half a step. A fault of one row is an [`Event::Failed`] of that request alone.
    pub fn step(&mut self) -> Result<Vec<Event>> {
        let events = self.step_together();
        if events.is_err() {
            self.slots.clear();
        }
        events
    }

    fn step_together(&mut self) -> Result<Vec<Event>> {
        let started = Instant::now();
        let chunk = self.prompt_chunk;
        let mut batch: Vec<Sequence<'_>> =
            self.slots.iter_mut().map(|slot| slot.sequence(chunk)).collect();
        let (scores, rows) = self.model.forward_scores(&mut batch)?;
        drop(batch);
        for slot in &mut self.slots {
            slot.seen = slot.request.prompt.len().min(slot.cache.len());
        }
        let tokenizer = self.tokenizer;
        let choices = self.sampler.choose(scores, &rows, &mut self.slots)?;
        let outcomes: Vec<Result<Option<Advance>>> = self
            .slots
            .par_iter_mut()
            .zip(choices)
            .map(|(slot, choice)| Ok(choice?.map(|choice| slot.advance(choice))))
            .collect();
        let elapsed = started.elapsed();
        let mut events = Vec::new();
        let mut left = Vec::new();
        for (index, outcome) in outcomes.into_iter().enumerate() {
            let slot = &mut self.slots[index];
            slot.account(elapsed);
            let id = slot.id;
            match outcome {
                Ok(None) => {}
                Ok(Some(advance)) => {
                    if !advance.text.is_empty() {
                        events.push(Event::Text(id, advance.text));
                    }
                    if let Some(finish) = advance.finish {
                        events.push(Event::Finished(id, Box::new(slot.finish(finish, tokenizer))));
                        left.push(id);
                    }
                }
                Err(error) => {
                    events.push(Event::Failed(id, Arc::new(error)));
                    left.push(id);
                }
            }
        }
        self.slots.retain(|slot| !left.contains(&slot.id));
        Ok(events)
    }

    /// Runs `requests` to their end and gives the results in their order; `on_text` is called
    /// with a request's place and the text that can no longer change, and may end the run by an
    /// error. Requests that joined before go on beside them, but their results are not kept:
    /// use a session of its own.
    ///
    /// # Errors
    /// The first error of any request, of the model or of `on_text`; the requests of this call
    /// then leave the session.
    pub fn run<E: From<Error>>(
        &mut self,
        requests: Vec<Request>,
        mut on_text: impl FnMut(usize, &str) -> std::result::Result<(), E>,
    ) -> std::result::Result<Vec<Generation>, E> {
        let mut ids = Vec::with_capacity(requests.len());
        let outcome = self.run_to_end(requests, &mut ids, &mut on_text);
        if outcome.is_err() {
            self.slots.retain(|slot| !ids.contains(&slot.id));
        }
        outcome
    }

    fn run_to_end<E: From<Error>>(
        &mut self,
        requests: Vec<Request>,
        ids: &mut Vec<RequestId>,
        on_text: &mut impl FnMut(usize, &str) -> std::result::Result<(), E>,
    ) -> std::result::Result<Vec<Generation>, E> {
        for request in requests {
            ids.push(self.add(request)?);
        }
        let mut results: Vec<Option<Generation>> = ids.iter().map(|_| None).collect();
        let place = |id: RequestId| ids.iter().position(|known| *known == id);
        while self.active() > 0 {
            for event in self.step()? {
                match event {
                    Event::Text(id, text) => {
                        if let Some(index) = place(id) {
                            on_text(index, &text)?;
                        }
                    }
                    Event::Finished(id, generation) => {
                        if let Some(index) = place(id) {
                            results[index] = Some(*generation);
                        }
                    }
                    Event::Failed(_, error) => {
                        return Err(Arc::try_unwrap(error)
                            .unwrap_or_else(|shared| Error::backend("a step failed", shared))
                            .into());
                    }
                }
            }
        }
        Ok(results.into_iter().flatten().collect())
    }
}

/// A token that was drawn, and what was measured beside it.
struct Choice {
    outcome: Outcome,
    chances: Option<Chances>,
    /// Empty unless they were asked for.
    alternatives: Vec<Alternative>,
}

/// What one step did for a request.
struct Advance {
    text: String,
    finish: Option<Finish>,
}

impl Slot<'_> {
    /// The ids that the model reads next.
    fn sequence(&mut self, chunk: usize) -> Sequence<'_> {
        let prompt = &self.request.prompt;
        let (ids, logits) = if self.seen < prompt.len() {
            let end = prompt.len().min(self.seen + chunk);
            let logits = if end == prompt.len() { LogitsAt::Last } else { LogitsAt::None };
            (&prompt[self.seen..end], logits)
        } else {
            let tokens = self.history.tokens();
            (&tokens[tokens.len() - 1..], LogitsAt::Last)
        };
        Sequence { ids, cache: &mut self.cache, logits }
    }

    /// What the mark and the draw are at this step; called once per token.
    fn next_draw(&mut self) -> (Step, Draw) {
        let step = match &mut self.request.marker {
            Some(marker) => marker.step(&self.request.prompt, self.history.generated()),
            None => Step::KEEP,
        };
        let draw = Draw {
            seed: self.request.seed,
            sample: self.request.sample,
            step: self.records.len() as u64,
        };
        (step, draw)
    }

    /// Draws a token on the host.
    fn draw(&mut self, logits: &[f32]) -> Result<Choice> {
        let (step, draw) = self.next_draw();
        let Observe { chances, alternatives } = self.request.observe;
        let bias = chances.filter(|_| self.request.marker.is_some());
        let (outcome, uncertainty) = self.request.chain.step_with_uncertainty(
            logits,
            &self.history,
            step,
            draw,
            bias,
            &mut self.scratch,
        )?;
        let alternatives =
            if alternatives > 0 { most_likely(logits, alternatives, &outcome) } else { Vec::new() };
        Ok(Choice { outcome, chances: uncertainty.chances, alternatives })
    }

    /// Takes a token in.
    fn advance(&mut self, choice: Choice) -> Advance {
        let Choice { outcome, chances, alternatives } = choice;
        if self.request.end_ids.contains(&outcome.token) {
            let text = self.flush();
            return Advance { text, finish: Some(Finish::EndToken(outcome.token)) };
        }
        let pending = self.decoder.pending();
        let fresh = self.decoder.push(outcome.token);
        // A token that starts inside a character stands where its first byte is; bytes that
        // turned out to begin no character became a replacement before it.
        let broken = pending > 0 && fresh.starts_with(char::REPLACEMENT_CHARACTER);
        let inside = if broken { char::REPLACEMENT_CHARACTER.len_utf8() } else { pending };
        self.take(&outcome, self.decoded + inside, chances);
        if self.request.observe.alternatives > 0 {
            self.alternatives.push(alternatives);
        }
        self.decoded += fresh.len();
        let StopOutput { mut text, stop } = self.stop.push(&fresh);
        self.text.push_str(&text);
        let finish = if let Some(index) = stop {
            Some(Finish::StopString(self.request.stop[index].clone()))
        } else if self.records.len() == self.request.max_tokens {
            text.push_str(&self.flush());
            Some(Finish::Length)
        } else {
            None
        };
        Advance { text, finish }
    }

    fn take(&mut self, outcome: &Outcome, offset: usize, chances: Option<Chances>) {
        self.records.push(StepRecord {
            token: outcome.token,
            offset,
            entropy: outcome.entropy,
            logprob: outcome.logprob,
            raw_logprob: outcome.raw_logprob,
            green_mass: outcome.green_mass,
            chances,
        });
        self.request.chain.accept(&mut self.history, outcome);
    }

    /// The text that was held back, at the end of the run.
    fn flush(&mut self) -> String {
        let mut text = self.stop.push(&self.decoder.finish()).text;
        text.push_str(&self.stop.finish());
        self.text.push_str(&text);
        text
    }

    fn account(&mut self, elapsed: Duration) {
        // The pass that ends the prompt draws the first token.
        if self.passes == 0 {
            self.timing.prompt += elapsed;
        } else {
            self.timing.decode += elapsed;
        }
        self.timing.decoded = self.passes;
        if self.seen == self.request.prompt.len() {
            self.passes += 1;
        }
    }

    fn finish(&mut self, finish: Finish, tokenizer: &Tokenizer) -> Generation {
        Generation::new(
            self.request.prompt.len(),
            std::mem::take(&mut self.text),
            std::mem::take(&mut self.records),
            std::mem::take(&mut self.alternatives),
            finish,
            self.request.chain.decoding(),
            self.timing,
            tokenizer,
        )
    }
}
