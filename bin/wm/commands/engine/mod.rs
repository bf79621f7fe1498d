//! The commands that run a model.

mod demo;
mod doctor;
mod eval;
mod generate;
mod loaded;
mod measure;
mod model;
mod prepare;
mod serve;
mod steps;

use anyhow::Result;
use greenmark::detect::entropy::{GreenListBias, TokenUncertainty};

pub(crate) use measure::{Known, Measurer};
pub(crate) use serve::ServedModel;

/// Whether this build has the engine.
pub(crate) const IS_PRESENT: bool = true;

use crate::args::{DemoArgs, EvalCommand, GenerateArgs, ModelArgs, PowerArgs};
use crate::commands::doctor::EngineState;
use crate::exit::Exit;

pub(crate) fn demo(args: &DemoArgs) -> Result<Exit> {
    demo::run(args)
}

/// What `wm doctor` says of processors and devices.
pub(crate) fn doctor() -> EngineState {
    doctor::look()
}

pub(crate) fn generate(args: &GenerateArgs) -> Result<Exit> {
    generate::run(args)
}

pub(crate) fn eval(command: &EvalCommand) -> Result<Exit> {
    eval::run(command)
}

pub(crate) fn inspect_model(args: &ModelArgs) -> Result<Exit> {
    model::run(args)
}

pub(crate) fn measure_steps(
    args: &PowerArgs,
    prompt: &str,
    bias: GreenListBias,
) -> Result<Vec<TokenUncertainty>> {
    steps::measure(args, prompt, bias)
}
