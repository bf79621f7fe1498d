//! `wm eval`: measurements of the mark on a real model, one file each.
//!
//! Keys and draws come from a seed, so that every figure can be printed again bit for bit.

mod curve;
mod entropy;
mod quick;

use std::sync::Arc;

use anyhow::{Context, Result};
use greenmark::Error;
use greenmark::engine::{Generation, Observe, Request, Session};
use greenmark::prf::Key;
use greenmark::sample::{Chain, SamplingOptions};
use greenmark::scheme::Marker;
use greenmark::token::TokenId;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::loaded::Loaded;
use crate::args::EvalCommand;
use crate::exit::Exit;

const PROMPTS: &str = include_str!("../../../../../data/prompts/raw.txt");
const PASSAGES: &str = include_str!("../../../../../data/human/passages.jsonl");

/// Texts that step together.
const BATCH: usize = 20;

pub(super) fn run(command: &EvalCommand) -> Result<Exit> {
    match command {
        EvalCommand::Quick(args) => quick::run(args),
        EvalCommand::Curve(args) => curve::run(args),
        EvalCommand::Entropy(args) => entropy::run(args),
    }
}

/// A passage that a person wrote.
#[derive(Deserialize)]
struct Passage {
    id: String,
    text: String,
}

/// The passages of `data/human`.
fn passages() -> Result<Vec<Passage>> {
    PASSAGES
        .lines()
        .map(|line| serde_json::from_str(line).context("data/human/passages.jsonl"))
        .collect()
}

/// The prompts of `data/prompts/raw.txt`.
fn raw_prompts() -> impl Iterator<Item = &'static str> {
    PROMPTS.lines()
}

/// A key for a repeatable measurement. It protects nothing.
fn seeded_key(seed: u64) -> Key {
    let mut hash = Sha256::new();
    hash.update(b"greenmark/eval-key/1");
    hash.update(seed.to_le_bytes());
    Key::from_bytes(hash.finalize().into())
}

/// One text to write.
struct Task {
    prompt: Vec<TokenId>,
    /// `None` writes without a mark.
    marker: Option<Marker>,
    /// Tells the draws of tasks apart: equal prompts with equal samples give equal texts.
    sample: u32,
}

/// Writes texts of one length at temperature 1; a model's own defaults may still truncate.
struct Writer<'a> {
    loaded: &'a Loaded,
    chain: Arc<Chain>,
    tokens: usize,
    seed: u64,
}

impl<'a> Writer<'a> {
    fn new(loaded: &'a Loaded, tokens: usize, seed: u64) -> Result<Self> {
        let options = SamplingOptions {
            temperature: Some(1.0),
            min_tokens: Some(tokens),
            ..SamplingOptions::default()
        };
        let chain = loaded.engine.chain(options)?;
        Ok(Self { loaded, chain, tokens, seed })
    }

    /// Writes a text for every task, in their order; `progress` is told the number of texts done.
    fn write(
        &self,
        mut tasks: Vec<Task>,
        mut progress: impl FnMut(usize),
    ) -> Result<Vec<Generation>> {
        let mut texts = Vec::with_capacity(tasks.len());
        while !tasks.is_empty() {
            let rest = tasks.split_off(tasks.len().min(BATCH));
            let batch = std::mem::replace(&mut tasks, rest);
            let requests = batch.into_iter().map(|task| self.request(task)).collect();
            let mut session =
                Session::new(self.loaded.engine.model(), self.loaded.engine.tokenizer());
            texts.extend(session.run(requests, |_, _| Ok::<(), Error>(()))?);
            progress(texts.len());
        }
        Ok(texts)
    }

    fn request(&self, task: Task) -> Request {
        Request {
            prompt: task.prompt,
            chain: Arc::clone(&self.chain),
            marker: task.marker,
            seed: self.seed,
            sample: task.sample,
            max_tokens: self.tokens,
            stop: Vec::new(),
            end_ids: self.loaded.engine.end_ids().to_vec(),
            observe: Observe::default(),
        }
    }
}
