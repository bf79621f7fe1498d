//! The sampler's answers on the device against those of the chain on the CPU, and a row's answer
//! in batches of several sizes. Any difference fails the run.

use std::sync::Arc;

use candle_core::{Device, Tensor};
use greenmark::engine::{DeviceChoice, DeviceHistory, DeviceSampler};
use greenmark::sample::kernel::Batch;
use greenmark::sample::{Chain, Draw, History, Outcome, SamplingOptions, Scratch};
use greenmark::scheme::Step;
use greenmark::token::{TokenId, TokenSet};
use serde_json::{Value, json};

use crate::Result;
use crate::arguments::Arguments;
use crate::kinds;
use crate::random::Random;
use crate::report::Report;

/// Rows that are launched together.
const TOGETHER: usize = 50;

pub(crate) fn run(arguments: &Arguments, report: &mut Report) -> Result<()> {
    let device = DeviceChoice::Cuda(0).open()?;
    let vocabs: &[usize] = if arguments.small {
        &[1, 17, 300, 4_097]
    } else {
        &[1, 2, 17, 300, 4_095, 4_097, 32_000, 49_152, 128_256, 151_936]
    };
    let each = arguments.number("rows", 200, 20);
    let mut wrong = Vec::new();
    for &vocab in vocabs {
        let found = against_the_chain(&device, vocab, each)?;
        println!(
            "vocabulary {vocab}: {each} rows, {} differ, {} dense",
            found.wrong.len(),
            found.dense
        );
        report.line(&json!({
            "bench": "bits", "vocab": vocab, "rows": each, "differ": found.wrong.len(),
            "failed_as_expected": found.failed, "dense_rows": found.dense,
        }))?;
        wrong.extend(found.wrong);
    }
    let (count, vocab) = if arguments.small { (16, 5_000) } else { (256, 32_000) };
    let sizes: &[usize] = if arguments.small { &[1, 7] } else { &[1, 7, 64] };
    let together = answers(&device, vocab, count, count, false)?;
    for (size, reversed) in sizes.iter().map(|&size| (size, false)).chain([(count, true)]) {
        let found = answers(&device, vocab, count, size, reversed)?;
        let differ = found.iter().zip(&together).filter(|(own, other)| own != other).count();
        let order = if reversed { "reversed, in batches of" } else { "in batches of" };
        println!("{count} rows {order} {size} against {count} together: {differ} differ");
        report.line(&json!({
            "bench": "invariance", "vocab": vocab, "rows": count, "batch": size,
            "reversed": reversed, "differ": differ,
        }))?;
        if differ > 0 {
            wrong.push(format!("{differ} rows {order} {size}"));
        }
    }
    match wrong.first() {
        None => Ok(()),
        Some(first) => Err(format!("{} answers differ; the first: {first}", wrong.len()).into()),
    }
}

struct Request {
    chain: Chain,
    prompt: Vec<TokenId>,
    step: Step,
    draw: Draw,
    logits: Vec<f32>,
    options: Value,
}

impl Request {
    fn random(random: &mut Random, vocab: usize) -> Result<Self> {
        let options = kinds::options(random, vocab);
        let greedy = options.get("temperature").and_then(Value::as_f64).is_some_and(|t| t < 1e-5);
        let step = kinds::step(random, vocab, greedy);
        // A few ids come again and again, so that members that look at repetitions act.
        let spread = vocab.min(*random.pick(&[3, 40, 1 << 20]));
        let prompt = (0..random.below(60)).map(|_| random.below(spread) as TokenId).collect();
        let never = (0..vocab as TokenId).filter(|id| id % 13 == 2);
        let never = Arc::new(TokenSet::from_ids(vocab, never.collect::<Vec<_>>())?);
        let parsed: SamplingOptions = serde_json::from_value(options.clone())?;
        let ends: &[TokenId] = if vocab > 2 { &[2] } else { &[] };
        Ok(Self {
            chain: Chain::new(parsed, vocab, ends, never)?,
            prompt,
            step,
            draw: Draw {
                seed: random.next(),
                sample: random.below(4) as u32,
                step: random.below(1000) as u64,
            },
            logits: kinds::logits(random, vocab),
            options,
        })
    }

    fn expected(&self, scratch: &mut Scratch) -> greenmark::Result<Outcome> {
        let history = History::new(&self.prompt);
        self.chain.step(&self.logits, &history, self.step.clone(), self.draw, scratch)
    }
}

/// All of an outcome. The text of a number is another for each of its bits.
fn text(outcome: &greenmark::Result<Outcome>) -> String {
    match outcome {
        Ok(outcome) => format!("{outcome:?}"),
        Err(error) => error.to_string(),
    }
}

/// What the device answers for a batch, and how many rows took the dense path.
fn answer(
    device: &Device,
    sampler: &mut DeviceSampler,
    requests: &[Request],
) -> Result<(Vec<String>, usize)> {
    let vocab = requests[0].logits.len();
    let mut batch = Batch::new(vocab);
    let mut histories = Vec::new();
    for request in requests {
        let Request { chain, prompt, step, draw, .. } = request;
        let shape = chain.history_shape();
        let history = shape.map(|shape| sampler.history(shape, prompt)).transpose()?;
        let address = history.as_ref().map_or(0, DeviceHistory::address);
        batch.push(chain, &History::new(prompt), step, *draw, address)?;
        histories.extend(history);
    }
    let values: Vec<f32> = requests.iter().flat_map(|r| r.logits.iter().copied()).collect();
    let logits = Tensor::from_vec(values, (requests.len(), vocab), device)?;
    let prepared = sampler.prepare(&batch)?;
    sampler.launch(&logits, &prepared, &histories.iter().collect::<Vec<_>>())?;
    let results = sampler.results(requests.len())?;
    let dense = results.iter().filter(|result| result.took_dense_path()).count();
    let texts = results.iter().enumerate();
    Ok((texts.map(|(index, result)| text(&batch.outcome(index, result))).collect(), dense))
}

#[derive(Default)]
struct Found {
    wrong: Vec<String>,
    /// Rows that no token can be drawn from, as the chain says too.
    failed: usize,
    dense: usize,
}

fn against_the_chain(device: &Device, vocab: usize, rows: usize) -> Result<Found> {
    let mut random = Random::new(vocab as u64 + 1);
    let mut sampler = DeviceSampler::new(device, vocab)?;
    let mut scratch = Scratch::new();
    let mut found = Found::default();
    let mut left = rows;
    while left > 0 {
        let count = left.min(TOGETHER);
        left -= count;
        let requests =
            (0..count).map(|_| Request::random(&mut random, vocab)).collect::<Result<Vec<_>>>()?;
        let (answers, dense) = answer(device, &mut sampler, &requests)?;
        found.dense += dense;
        for (request, answer) in requests.iter().zip(answers) {
            let expected = request.expected(&mut scratch);
            found.failed += usize::from(expected.is_err());
            if answer != text(&expected) {
                found.wrong.push(format!(
                    "vocabulary {vocab}, options {}, step {:?}: device {answer}, chain {}",
                    request.options,
                    request.step,
                    text(&expected)
                ));
            }
        }
    }
    Ok(found)
}

/// The answers of the same `count` requests, `size` a batch.
fn answers(
    device: &Device,
    vocab: usize,
    count: usize,
    size: usize,
    reversed: bool,
) -> Result<Vec<String>> {
    let mut random = Random::new(11);
    let mut requests =
        (0..count).map(|_| Request::random(&mut random, vocab)).collect::<Result<Vec<_>>>()?;
    if reversed {
        requests.reverse();
    }
    let mut sampler = DeviceSampler::new(device, vocab)?;
    let mut all = Vec::new();
    for group in requests.chunks(size) {
        all.extend(answer(device, &mut sampler, group)?.0);
    }
    if reversed {
        all.reverse();
    }
    Ok(all)
}
