//! The commands that need a model, in a build without the engine: they say how to get it.

use anyhow::Result;
use greenmark::Error;

use crate::args::{DemoArgs, EvalCommand, GenerateArgs, ModelArgs};
use crate::exit::Exit;

fn absent() -> Result<Exit> {
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
