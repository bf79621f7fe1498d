//! Times of the sampler alone, from logits on the device to tokens on the device.
//!
//! Between two CUDA events stand many launches, over logits that rotate through more memory than
//! the L2 cache holds (`cold`), or over the same ones (`warm`; they are in the cache as far as they
//! fit). The host packs nothing in between. Where `enqueue_us` is about the time itself, it was the
//! host that could not launch any faster.

use std::sync::Arc;
use std::time::{Duration, Instant};

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::driver::{CudaStream, sys};
use candle_core::{Device, Storage, Tensor};
use greenmark::engine::{DeviceChoice, DeviceHistory, DeviceSampler, PreparedRows};
use greenmark::sample::kernel::Batch;
use greenmark::sample::{Chain, Draw, History, SamplingOptions};
use greenmark::scheme::{Scheme, Step};
use greenmark::token::{TokenId, TokenSet};
use serde_json::json;

use crate::arguments::Arguments;
use crate::random::Random;
use crate::report::{Report, median};
use crate::{Result, green_list};

/// Rows that differ; the pool repeats them.
const DISTINCT: usize = 64;
/// Tokens that a request had before.
const PROMPT: usize = 500;
/// Time after which no further sample of one measurement is taken.
const PATIENCE: Duration = Duration::from_millis(500);

pub(crate) fn run(arguments: &Arguments, report: &mut Report) -> Result<()> {
    let small = arguments.small;
    let device = DeviceChoice::Cuda(0).open()?;
    let vocabs: &[usize] = if small { &[5_003, 2_000] } else { &[128_256, 151_936] };
    let batches: &[usize] = if small { &[1, 4] } else { &[1, 8, 64, 128, 256] };
    let plan = Plan {
        samples: arguments.number("samples", 50, 2),
        launches: arguments.number("launches", 16, 2),
    };
    println!("{HEAD}");
    for &vocab in vocabs {
        let pool = Pool::new(&device, vocab, if small { 8 } else { 512 }, false)?;
        for &rows in batches {
            let copies = [copy(&pool, rows, true, plan)?, copy(&pool, rows, false, plan)?];
            for (name, options) in settings() {
                case(&pool, rows, name, &options, &copies, plan, report)?;
            }
        }
    }
    // A row whose nucleus is no list: one block works on it while the device has little else to do.
    let rows = if small { 4 } else { DISTINCT };
    let pool = Pool::new(&device, vocabs[0], if small { 8 } else { 512 }, true)?;
    let copies = [copy(&pool, rows, true, plan)?, copy(&pool, rows, false, plan)?];
    let options = SamplingOptions { top_p: Some(0.95), ..SamplingOptions::default() };
    case(&pool, rows, "top-p, one row flat", &options, &copies, plan, report)
}

/// How often.
#[derive(Clone, Copy)]
struct Plan {
    samples: usize,
    /// Launches of a sample.
    launches: usize,
}

const HEAD: &str = "microseconds a step, median: logits from memory (cold) and from the L2 cache (warm)\n\
     vocab   rows  setting                copy cold  plain cold  mark cold  share  plain warm  mark warm  dense rows";

fn settings() -> [(&'static str, SamplingOptions); 4] {
    let none = SamplingOptions::default;
    [
        ("none", none()),
        ("top-p", SamplingOptions { top_p: Some(0.95), ..none() }),
        ("top-k, top-p", SamplingOptions { top_k: Some(50), top_p: Some(0.95), ..none() }),
        (
            "full",
            SamplingOptions {
                temperature: Some(0.8),
                repetition_penalty: Some(1.1),
                frequency_penalty: Some(0.1),
                top_k: Some(100),
                top_p: Some(0.95),
                min_p: Some(0.02),
                typical_p: Some(0.95),
                ..none()
            },
        ),
    ]
}

/// Logits on the device, more than the L2 cache holds.
struct Pool {
    device: Device,
    stream: Arc<CudaStream>,
    vocab: usize,
    rows: usize,
    logits: Tensor,
}

impl Pool {
    fn new(device: &Device, vocab: usize, rows: usize, one_flat: bool) -> Result<Self> {
        let mut random = Random::new(vocab as u64);
        let mut distinct: Vec<Vec<f32>> =
            (0..DISTINCT.min(rows)).map(|_| like_a_model(&mut random, vocab)).collect();
        if one_flat {
            distinct[0] = (0..vocab).map(|_| random.normal() as f32).collect();
        }
        let values: Vec<f32> =
            (0..rows).flat_map(|row| distinct[row % distinct.len()].iter().copied()).collect();
        Ok(Self {
            logits: Tensor::from_vec(values, (rows, vocab), device)?,
            stream: device.as_cuda_device()?.cuda_stream(),
            device: device.clone(),
            vocab,
            rows,
        })
    }

    /// Batch `index` of `rows` rows.
    fn batch(&self, rows: usize, index: usize) -> Result<Tensor> {
        Ok(self.logits.narrow(0, index % (self.rows / rows) * rows, rows)?)
    }
}

/// A row such as models make: a bell, and some tokens far above it.
fn like_a_model(random: &mut Random, vocab: usize) -> Vec<f32> {
    let mut row: Vec<f32> = (0..vocab).map(|_| (2.4 * random.normal()) as f32).collect();
    for _ in 0..40.min(vocab) {
        row[random.below(vocab)] = (13.5 + 1.5 * random.normal()) as f32;
    }
    row
}

/// Microseconds of one piece of work.
struct Times {
    median: f64,
    best: f64,
    /// What the host took to enqueue it.
    enqueue: f64,
    samples: usize,
}

fn time(
    stream: &Arc<CudaStream>,
    plan: Plan,
    mut work: impl FnMut(usize) -> Result<()>,
) -> Result<Times> {
    let timed = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
    // Batches go round over all samples: one alone would fit the cache.
    let mut next = 0..;
    let mut launch_all = || next.by_ref().take(plan.launches).try_for_each(&mut work);
    launch_all()?;
    stream.synchronize()?;
    let started = Instant::now();
    let (mut times, mut enqueued) = (Vec::new(), Vec::new());
    while times.len() < plan.samples && (times.len() < 3 || started.elapsed() < PATIENCE) {
        let enqueuing = Instant::now();
        let before = stream.record_event(timed)?;
        launch_all()?;
        let after = stream.record_event(timed)?;
        enqueued.push(enqueuing.elapsed().as_secs_f64() * 1e6 / plan.launches as f64);
        times.push(f64::from(before.elapsed_ms(&after)?) * 1e3 / plan.launches as f64);
    }
    let samples = times.len();
    let median_time = median(&mut times);
    Ok(Times { median: median_time, best: times[0], enqueue: median(&mut enqueued), samples })
}

/// A copy of as many bytes within the device.
fn copy(pool: &Pool, rows: usize, cold: bool, plan: Plan) -> Result<Times> {
    let mut target = pool.device.as_cuda_device()?.alloc_zeros::<f32>(rows * pool.vocab)?;
    let batches =
        (0..pool.rows / rows).map(|index| pool.batch(rows, index)).collect::<Result<Vec<_>>>()?;
    time(&pool.stream, plan, |index| {
        let logits = &batches[if cold { index % batches.len() } else { 0 }];
        let (storage, layout) = logits.storage_and_layout();
        let (Storage::Cuda(storage), Some((start, end))) = (&*storage, layout.contiguous_offsets())
        else {
            return Err("logits are not on the device".into());
        };
        let source = storage.as_cuda_slice::<f32>()?.slice(start..end);
        Ok(storage.device().cuda_stream().memcpy_dtod(&source, &mut target)?)
    })
}

/// Rows that are ready to be launched.
struct Requests {
    sampler: DeviceSampler,
    prepared: PreparedRows,
    histories: Vec<DeviceHistory>,
    /// What the host took to pack and copy the rows.
    pack: f64,
}

fn requests(pool: &Pool, rows: usize, options: &SamplingOptions, step: &Step) -> Result<Requests> {
    let sampler = DeviceSampler::new(&pool.device, pool.vocab)?;
    let nobody = Arc::new(TokenSet::empty(pool.vocab));
    let chain = Chain::new(options.clone(), pool.vocab, &[2], nobody)?;
    let mut histories = Vec::new();
    let mut hosts = Vec::new();
    for row in 0..rows {
        let prompt: Vec<TokenId> =
            (0..PROMPT).map(|id| (id * 37 + row) as TokenId % pool.vocab as TokenId).collect();
        if let Some(shape) = chain.history_shape() {
            histories.push(sampler.history(shape, &prompt)?);
        }
        hosts.push(History::new(&prompt));
    }
    let pack = || -> Result<PreparedRows> {
        let mut batch = Batch::new(pool.vocab);
        for (row, history) in hosts.iter().enumerate() {
            let draw = Draw { seed: row as u64, sample: 0, step: 7 };
            let address = histories.get(row).map_or(0, DeviceHistory::address);
            batch.push(&chain, history, step, draw, address)?;
        }
        Ok(sampler.prepare(&batch)?)
    };
    let prepared = pack()?;
    let mut packing: Vec<f64> = Vec::new();
    for _ in 0..5 {
        let started = Instant::now();
        pack()?;
        packing.push(started.elapsed().as_secs_f64() * 1e6);
    }
    Ok(Requests { sampler, prepared, histories, pack: median(&mut packing) })
}

fn case(
    pool: &Pool,
    rows: usize,
    name: &str,
    options: &SamplingOptions,
    copies: &[Times; 2],
    plan: Plan,
    report: &mut Report,
) -> Result<()> {
    let steps = [Step::KEEP, green_list()?.step(&[7])];
    let mut medians = [[0.0; 2]; 2];
    let mut dense = [0; 2];
    for (marked, step) in steps.iter().enumerate() {
        let Requests { mut sampler, prepared, histories, pack } =
            requests(pool, rows, options, step)?;
        let histories: Vec<&DeviceHistory> = histories.iter().collect();
        let batches = (0..pool.rows / rows)
            .map(|index| pool.batch(rows, index))
            .collect::<Result<Vec<_>>>()?;
        let mut looked_at = 0;
        for logits in batches.iter().take(4) {
            sampler.launch(logits, &prepared, &histories)?;
            let results = sampler.results(rows)?;
            looked_at += rows;
            dense[marked] += results.iter().filter(|result| result.took_dense_path()).count();
        }
        for (warm, place) in ["cold", "warm"].into_iter().enumerate() {
            let times = time(&pool.stream, plan, |index| {
                let logits = &batches[if warm == 0 { index % batches.len() } else { 0 }];
                Ok(sampler.launch(logits, &prepared, &histories)?)
            })?;
            medians[marked][warm] = times.median;
            let share =
                (marked == 1).then(|| (medians[1][warm] - medians[0][warm]) / medians[1][warm]);
            report.line(&json!({
                "bench": "chain", "vocab": pool.vocab, "rows": rows, "setting": name,
                "marked": marked == 1, "logits": place, "median_us": times.median,
                "best_us": times.best, "enqueue_us": times.enqueue, "samples": times.samples,
                "launches": plan.launches, "pack_us": pack, "copy_us": copies[warm].median,
                "mark_share": share, "dense_rows": dense[marked], "looked_at": looked_at,
            }))?;
        }
    }
    let share = 100.0 * (medians[1][0] - medians[0][0]) / medians[1][0];
    println!(
        "{:>7}  {rows:>5}  {name:<21} {:>10.1}  {:>10.1}  {:>9.1}  {share:>4.0}%  {:>10.1}  {:>9.1}  {:>10}",
        pool.vocab,
        copies[0].median,
        medians[0][0],
        medians[1][0],
        medians[0][1],
        medians[1][1],
        dense[0] + dense[1],
    );
    Ok(())
}
