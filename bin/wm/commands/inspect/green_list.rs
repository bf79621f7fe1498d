//! `wm inspect green-list`: the list after a context, in the form of the golden vectors.

use anyhow::Result;
use greenmark::prf::hex;
use greenmark::profile::{ContextWidth, Delta, Gamma};
use greenmark::sample::math::MAX_CANDIDATES;
use greenmark::scheme::GreenList;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::args::{GreenListArgs, KeyArgs};
use crate::exit::Exit;
use crate::output;
use crate::resolve::{KeySource, parse_ids, resolve_key};

#[derive(Serialize)]
struct GreenListReport {
    context: Vec<u32>,
    gamma: f64,
    threshold: u32,
    vocab: usize,
    seed: String,
    first_words: Vec<u32>,
    green_count: usize,
    first_green: Vec<u32>,
    last_green: Vec<u32>,
    sha256_of_sorted_u32le: String,
}

pub(crate) fn run(args: GreenListArgs) -> Result<Exit> {
    let key_args = KeyArgs { key_file: args.key_file, key_id: None };
    let key = resolve_key(&key_args, KeySource::Existing)?.key;
    let context = parse_ids("context", &args.context)?;
    let gamma = Gamma::new(args.gamma)?;
    let width = ContextWidth::new(context.len() as u64)?;
    let vocab = match u32::try_from(args.vocab) {
        Ok(vocab @ 1..) if args.vocab <= MAX_CANDIDATES => vocab,
        _ => {
            let allowed = format!("1 to {MAX_CANDIDATES}");
            return Err(greenmark::Error::parameter("vocab", args.vocab, allowed).into());
        }
    };
    let scheme = GreenList::new(&key, gamma, Delta::DEFAULT, width);
    let words = scheme.words(&context, args.vocab);
    let green: Vec<u32> = (0..vocab)
        .zip(&words)
        .filter(|(_, word)| **word < gamma.threshold())
        .map(|(id, _)| id)
        .collect();
    let mut hash = Sha256::new();
    for id in &green {
        hash.update(id.to_le_bytes());
    }
    let report = GreenListReport {
        seed: hex(&scheme.seed(&context)),
        gamma: gamma.get(),
        threshold: gamma.threshold(),
        vocab: args.vocab,
        first_words: words.iter().take(4).copied().collect(),
        green_count: green.len(),
        first_green: green.iter().take(12).copied().collect(),
        last_green: green[green.len().saturating_sub(6)..].to_vec(),
        sha256_of_sorted_u32le: hex(&hash.finalize()),
        context,
    };
    if args.json {
        output::json(&report)?;
    } else {
        output::line(&format!(
            "seed          {}\nfirst words   {:?}\ngreen         {} of {} (gamma {}, threshold {})\n\
             first green   {:?}\nlast green    {:?}\nSHA-256       {}",
            report.seed,
            report.first_words,
            report.green_count,
            report.vocab,
            report.gamma,
            report.threshold,
            report.first_green,
            report.last_green,
            report.sha256_of_sorted_u32le,
        ))?;
    }
    Ok(Exit::Success)
}
