//! What only a GPU can answer: times by CUDA events, the sampler's bits, decode speed.
//!
//! `gpu MODE [--small] [--json FILE] [--NAME NUMBER]...`, with MODE one of
//! - `chain`: microseconds of a step of the sampler, with and without the mark, beside a copy of the same bytes;
//! - `bits`: random rows against the chain on the CPU, and rows in batches of several sizes;
//! - `generate`: the tokens of tiny checkpoints on GPU and CPU, and the mark in them;
//! - `decode`: tokens a second of a synthetic model (`--layers`, `--hidden`, `--intermediate`, `--heads`,
//!   `--kv-heads`, `--vocab`).
//!
//! Measurements go to FILE as JSON, one a line, and to the output as tables. The exit status is 1
//! when a comparison fails or nothing could be measured. `--small` is for the mock driver of
//! `tests/gpu`, on which times mean nothing.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the generators are shared with tests; numbers are small"
)]

mod arguments;
mod bits;
mod chain;
mod decode;
mod generate;
#[path = "../../tests/kernels/kinds.rs"]
mod kinds;
#[path = "../../tests/kernels/random.rs"]
mod random;
mod report;
mod synthetic;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use arguments::Arguments;
use greenmark::prf::Key;
use greenmark::profile::{Context, ContextWidth, Delta, Gamma, PromptContext, Repeats};
use greenmark::scheme::{GreenList, Marker};
use report::Report;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gpu: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let mut report = Report::new(arguments.json.as_deref())?;
    match arguments.mode.as_str() {
        "chain" => chain::run(&arguments, &mut report),
        "bits" => bits::run(&arguments, &mut report),
        "generate" => generate::run(&arguments, &mut report),
        "decode" => decode::run(&arguments, &mut report),
        other => Err(format!("no mode {other}; there are chain, bits, generate and decode").into()),
    }
}

/// The mark that is measured.
fn green_list() -> Result<GreenList> {
    let key = Key::from_bytes([5; 32]);
    Ok(GreenList::new(&key, Gamma::DEFAULT, Delta::DEFAULT, ContextWidth::new(1)?))
}

fn marker() -> Result<Marker> {
    let width = ContextWidth::new(1)?;
    let rule = Context { width, prompt: PromptContext::Tail, repeats: Repeats::Mark };
    Ok(Marker::new(Arc::new(green_list()?), rule))
}
