//! Tokens a second of whole steps: forward pass, sampler and mark on the device, text on the host.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use greenmark::engine::{
    BatchShape, DeviceChoice, DeviceDtype, Event, Model, Observe, Placement, Request, Session,
};
use greenmark::sample::{Chain, SamplingOptions};
use greenmark::text::Tokenizer;
use greenmark::token::TokenSet;
use serde_json::json;

use crate::arguments::Arguments;
use crate::report::{Report, median};
use crate::synthetic::Shape;
use crate::{Result, marker};

const PROMPT: usize = 16;
/// Steps after the prompt that are not timed.
const WARM_UP: usize = 8;

pub(crate) fn run(arguments: &Arguments, report: &mut Report) -> Result<()> {
    let shape = Shape::of(arguments);
    let folder = std::env::temp_dir().join(format!("greenmark-synthetic-{}", shape.bytes()));
    let writing = Instant::now();
    shape.write(&folder)?;
    let (size, seconds) = (shape.bytes() as f64 / 1e9, writing.elapsed().as_secs_f64());
    println!("synthetic model: {size:.2} GB, written in {seconds:.1} s");
    println!("pass       batch  mark   tok/s  ms a step");
    let rows = arguments.number("fixed", 64, 4);
    let measured = [BatchShape::Free, BatchShape::Fixed(rows)]
        .into_iter()
        .try_for_each(|pass| measure(arguments, report, &shape, &folder, pass));
    // Gigabytes that nobody asked to keep.
    std::fs::remove_dir_all(&folder)?;
    measured
}

/// Every batch with passes of one shape.
fn measure(
    arguments: &Arguments,
    report: &mut Report,
    shape: &Shape,
    folder: &Path,
    pass: BatchShape,
) -> Result<()> {
    let steps = arguments.number("steps", 64, 2);
    let batches: &[usize] = if arguments.small { &[1, 3] } else { &[1, 8, 64] };
    let tokenizer =
        Tokenizer::open(concat!(env!("CARGO_MANIFEST_DIR"), "/data/models/tokenizer-300.json"))?;
    let device = DeviceChoice::Cuda(0).open()?;
    let placement = Placement { dtype: DeviceDtype::Bf16, batch: pass, ..Placement::from(device) };
    let model = Model::load_with(folder, &placement)?;
    let name = match pass {
        BatchShape::Free => "free".to_owned(),
        BatchShape::Fixed(rows) => format!("fixed {rows}"),
    };
    for &batch in batches {
        for marked in [false, true] {
            let mut session = Session::new(&model, &tokenizer);
            for index in 0..batch {
                session.add(request(shape.vocab, index, marked, steps + WARM_UP + 1)?)?;
            }
            let mut times = step_times(&mut session, steps)?;
            let rate = (batch * times.len()) as f64 / times.iter().sum::<f64>();
            let milliseconds = median(&mut times) * 1e3;
            let mark = if marked { "yes" } else { "no" };
            println!("{name:<9}  {batch:>5}  {mark:<4}  {rate:>6.0}  {milliseconds:>9.2}");
            report.line(&json!({
                "bench": "decode", "pass": name, "batch": batch, "marked": marked,
                "tokens_per_second": rate, "median_step_ms": milliseconds, "steps": steps,
                "weight_bytes": shape.bytes(), "kernels": model.info().kernels,
            }))?;
        }
    }
    Ok(())
}

/// Seconds of each step behind those that warm up. A step ends when its tokens are on the host.
fn step_times(session: &mut Session<'_>, steps: usize) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    for step in 0..steps + WARM_UP {
        let started = Instant::now();
        for event in session.step()? {
            if let Event::Failed(_, error) = event {
                return Err(error.to_string().into());
            }
        }
        if step >= WARM_UP {
            times.push(started.elapsed().as_secs_f64());
        }
    }
    Ok(times)
}

fn request(vocab: usize, index: usize, marked: bool, tokens: usize) -> Result<Request> {
    let options = SamplingOptions {
        temperature: Some(0.8),
        top_k: Some(50),
        top_p: Some(0.95),
        ..SamplingOptions::default()
    };
    let nobody = Arc::new(TokenSet::empty(vocab));
    let prompt = (0..PROMPT).map(|id| u32::try_from((index * 31 + id * 7) % vocab));
    Ok(Request {
        prompt: prompt.collect::<std::result::Result<_, _>>()?,
        chain: Arc::new(Chain::new(options, vocab, &[], nobody)?),
        marker: if marked { Some(marker()?) } else { None },
        seed: index as u64,
        sample: 0,
        max_tokens: tokens,
        stop: Vec::new(),
        // No text ends before its time is taken.
        end_ids: Vec::new(),
        observe: Observe::default(),
    })
}
