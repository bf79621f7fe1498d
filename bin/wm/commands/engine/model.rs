//! `wm inspect model`: what a model says at each position of given ids.

use anyhow::Result;
use greenmark::Error;
use greenmark::engine::{Distribution, LogitsAt, Model, Sequence};
use greenmark::token::TokenId;
use serde::Serialize;

use super::loaded::load_model;
use crate::args::ModelArgs;
use crate::exit::Exit;
use crate::output;
use crate::resolve::{Placing, parse_ids};

#[derive(Serialize)]
struct ModelView {
    #[serde(rename = "model")]
    spec: String,
    architecture: String,
    kernels: String,
    vocab_size: usize,
    context_length: usize,
    ids: Vec<TokenId>,
    positions: Vec<Position>,
    #[serde(skip_serializing_if = "Option::is_none")]
    greedy: Option<Vec<TokenId>>,
}

#[derive(Serialize)]
struct Position {
    #[serde(rename = "position")]
    index: usize,
    id: TokenId,
    argmax: TokenId,
    logsumexp: f64,
    entropy_nats: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprob_of_next: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logits: Option<Vec<f32>>,
}

pub(super) fn run(args: &ModelArgs) -> Result<Exit> {
    let ids = parse_ids("ids", &args.ids)?;
    if ids.is_empty() {
        return Err(Error::parameter("ids", "no ids", "at least one token id").into());
    }
    let opened = Placing::resolve(&args.device)?.open()?;
    let (model, _) = load_model(&args.source, &opened)?;
    let info = model.info();
    let needed = ids.len().saturating_add(args.greedy);
    if needed > info.context_length {
        return Err(Error::ContextLength {
            prompt: ids.len(),
            requested: args.greedy,
            context: info.context_length,
        }
        .into());
    }
    let (positions, greedy) = look(&model, &ids, args)?;
    let report = ModelView {
        spec: args.source.model.clone(),
        architecture: info.architecture.name().to_owned(),
        kernels: info.kernels.clone(),
        vocab_size: info.vocab_size,
        context_length: info.context_length,
        positions,
        greedy: (args.greedy > 0).then_some(greedy),
        ids,
    };
    if args.json {
        output::json(&report)?;
    } else {
        print(&report)?;
    }
    Ok(Exit::Success)
}

fn look(model: &Model, ids: &[TokenId], args: &ModelArgs) -> Result<(Vec<Position>, Vec<TokenId>)> {
    let mut cache = model.new_cache(ids.len() + args.greedy)?;
    let mut batch = [Sequence { ids, cache: &mut cache, logits: LogitsAt::Every }];
    let rows = model.forward(&mut batch)?;
    let mut positions = Vec::with_capacity(ids.len());
    for (position, &id) in ids.iter().enumerate() {
        let row = rows[0].row(position).unwrap_or_default();
        let distribution = describe(row, position)?;
        let logprob = |next: &TokenId| f64::from(row[*next as usize]) - distribution.logsumexp;
        positions.push(Position {
            index: position,
            id,
            argmax: distribution.argmax,
            logsumexp: distribution.logsumexp,
            entropy_nats: distribution.entropy,
            logprob_of_next: ids.get(position + 1).map(logprob),
            logits: (args.logits > 0).then(|| row.iter().take(args.logits).copied().collect()),
        });
    }
    let mut greedy = Vec::with_capacity(args.greedy);
    let mut next = positions.last().map_or(0, |position| position.argmax);
    while greedy.len() < args.greedy {
        greedy.push(next);
        let ids = [next];
        let mut batch = [Sequence { ids: &ids, cache: &mut cache, logits: LogitsAt::Last }];
        let rows = model.forward(&mut batch)?;
        next = describe(rows[0].last().unwrap_or_default(), positions.len() + greedy.len())?.argmax;
    }
    Ok((positions, greedy))
}

/// What a row says. A row that is missing or holds no numbers is an error and never a gap or an
/// id 0 in the result.
fn describe(row: &[f32], position: usize) -> Result<Distribution, Error> {
    let nan = row.iter().filter(|logit| logit.is_nan()).count();
    let infinite = row.iter().filter(|logit| **logit == f32::INFINITY).count();
    match Distribution::of(row) {
        Some(distribution) if nan + infinite == 0 => Ok(distribution),
        _ => {
            let (step, total) = (position as u64, row.len());
            Err(Error::NonFiniteLogits { step, nan, infinite, total })
        }
    }
}

fn print(report: &ModelView) -> Result<()> {
    output::line(&format!(
        "{} ({}, {} ids, context {}; {})\nposition      id  argmax  logsumexp   entropy  logprob of next",
        report.spec, report.architecture, report.vocab_size, report.context_length, report.kernels
    ))?;
    for row in &report.positions {
        let next = row.logprob_of_next.map_or_else(String::new, |value| format!("{value:>15.4}"));
        output::line(&format!(
            "{:>8} {:>7} {:>7} {:>10.4} {:>9.4}  {next}",
            row.index, row.id, row.argmax, row.logsumexp, row.entropy_nats
        ))?;
        if let Some(logits) = &row.logits {
            output::line(&format!("         {logits:.4?}"))?;
        }
    }
    if let Some(greedy) = &report.greedy {
        output::line(&format!("greedy {greedy:?}"))?;
    }
    Ok(())
}
