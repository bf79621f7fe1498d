//! The commands that need a model, in a build without the engine: they say how to get it.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use greenmark::Error;
use greenmark::detect::entropy::{GreenListBias, TokenUncertainty};
use greenmark::sample::Effective;
use greenmark::server::{GenerationSettings, Generator, Profiles};
use greenmark::text::Tokenizer;
use greenmark::token::TokenId;

use crate::args::{DemoArgs, EvalCommand, GenerateArgs, ModelArgs, PowerArgs};
use crate::commands::doctor::EngineState;
use crate::exit::Exit;
use crate::resolve::Placing;

/// Whether this build has the engine.
pub(crate) const IS_PRESENT: bool = false;

fn absent<T>() -> Result<T> {
    Err(Error::Unavailable {
        what: "the engine".to_owned(),
        reason: "this build of wm is a detector only".to_owned(),
        remedy: "build with the default features: cargo install --path .".to_owned(),
    }
    .into())
}

pub(crate) fn demo(_args: &DemoArgs) -> Result<Exit> {
    absent()
}

pub(crate) fn generate(_args: &GenerateArgs) -> Result<Exit> {
    absent()
}

pub(crate) fn eval(_command: &EvalCommand) -> Result<Exit> {
    absent()
}

pub(crate) fn inspect_model(_args: &ModelArgs) -> Result<Exit> {
    absent()
}

/// What is known of the way a text was generated.
#[derive(Clone, Copy)]
#[expect(dead_code, reason = "this build has no model that could use it")]
pub(crate) struct Known<'a> {
    pub(crate) sampling: Option<&'a Effective>,
    pub(crate) seed: u64,
}

/// A model that reads texts: there is none.
pub(crate) enum Measurer {}

impl Measurer {
    pub(crate) fn open(
        _spec: &str,
        _offline: bool,
        _placing: Placing,
        _tokenizer: Arc<Tokenizer>,
    ) -> Result<Self> {
        absent()
    }

    pub(crate) fn measure(
        &self,
        _prompt: Option<&str>,
        _ids: &[TokenId],
        _bias: Option<GreenListBias>,
        _known: Known<'_>,
    ) -> Result<Vec<Option<TokenUncertainty>>> {
        match *self {}
    }
}

/// The model of a service: this build has none, so none is ever loaded.
pub(crate) enum ServedModel {}

impl ServedModel {
    pub(crate) fn new(
        _spec: String,
        _tokenizer: Option<PathBuf>,
        _offline: bool,
        _placing: Placing,
        _settings: GenerationSettings,
    ) -> Result<Self> {
        absent()
    }

    pub(crate) fn load(self, _profiles: &Profiles) -> Result<Generator> {
        match self {}
    }
}

/// What `wm doctor` says of the engine: nothing.
pub(crate) fn doctor() -> EngineState {
    EngineState::default()
}

pub(crate) fn measure_steps(
    _args: &PowerArgs,
    _prompt: &str,
    _bias: GreenListBias,
) -> Result<Vec<TokenUncertainty>> {
    absent()
}
