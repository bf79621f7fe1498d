//! The operator's texts as passages: files, folders, JSON lines.

use anyhow::Result;
use greenmark::Error;
use greenmark::detect::calibration::{Corpus, Passage};
use greenmark::document::passages;
use greenmark::text::Tokenizer;
use rayon::prelude::*;

use crate::args::CalibrateArgs;
use crate::commands::detect::{Input, Inputs};
use crate::output::note;

/// Texts that are encoded together; the memory beside the passages is theirs.
const BATCH: usize = 64;
/// Inputs without text that are named on standard error.
const NAMED: usize = 5;

/// What was read.
pub(super) struct Texts {
    pub(super) corpus: Corpus,
    /// Inputs that hold no text, and why.
    pub(super) left_out: Vec<String>,
}

/// Reads all texts and cuts them into passages of `longest` tokens. An input that is no text is
/// left out and named; one that cannot be read ends the run.
pub(super) fn read(
    args: &CalibrateArgs,
    tokenizer: &Tokenizer,
    shortest: usize,
    longest: usize,
) -> Result<Texts> {
    let field = args.jsonl.as_deref();
    let mut inputs = Inputs::new(args.paths.clone(), field.is_some());
    let bar = super::bar(None, "reading: {pos} texts");
    let (mut names, mut passages) = (Vec::new(), Vec::new());
    let mut left_out = Vec::new();
    loop {
        let batch: Vec<Input> = inputs.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            break;
        }
        let read: Vec<Found> = batch
            .into_par_iter()
            .map(|input| find(input, field, tokenizer, shortest, longest))
            .collect();
        for found in read {
            match found {
                Found::Passages(name, found) => {
                    // More texts than 2^32 would not fit memory.
                    let document = u32::try_from(names.len())?;
                    passages.extend(found.into_iter().map(|found| Passage { document, ..found }));
                    names.push(name);
                    bar.inc(1);
                }
                Found::NoText(error @ Error::Io { .. }) => return Err(error.into()),
                Found::NoText(error) => {
                    if left_out.len() < NAMED {
                        bar.suspend(|| note!("left out: {error}"));
                    }
                    left_out.push(error.to_string());
                }
            }
        }
    }
    bar.finish_and_clear();
    if left_out.len() > NAMED {
        note!("left out {} inputs in all; --json lists them", left_out.len());
    }
    if passages.is_empty() {
        let allowed = format!("texts of at least {shortest} tokens");
        return Err(Error::parameter("PATH", "no passage", allowed).into());
    }
    Ok(Texts { corpus: Corpus::new(&names, passages), left_out })
}

/// What an input holds.
enum Found {
    Passages(String, Vec<Passage>),
    NoText(Error),
}

fn find(
    input: Input,
    field: Option<&str>,
    tokenizer: &Tokenizer,
    shortest: usize,
    longest: usize,
) -> Found {
    let input = input.parsed(field);
    let name = input.label().to_string();
    let cut = || {
        let text = String::from_utf8(input.read()?).map_err(|error| {
            let at = error.utf8_error().valid_up_to() as u64;
            Error::file(&name, at, "the text is not UTF-8", "convert it to UTF-8 first")
        })?;
        passages(tokenizer, &text, 0, shortest, longest)
    };
    match cut() {
        Ok(passages) => Found::Passages(name, passages),
        Err(error) => Found::NoText(error),
    }
}
