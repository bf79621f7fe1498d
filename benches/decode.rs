//! Decode speed of this crate's engine and of candle-transformers' `quantized_llama` on the same
//! GGUF file: one sequence, a prompt of 32 tokens, then 128 greedy tokens, on 1 and 2 threads.
//!
//! `cargo bench --features oracle --bench decode --profile dev` prints the table. The model is `$WM_TEST_MODEL` or the default
//! model in the cache. The number of threads of both engines is fixed when a process starts, so
//! the bench runs itself once per setting; of three runs each the fastest counts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use candle_core::quantized::gguf_file;
use candle_core::{Device, Tensor};
use candle_transformers::models::quantized_llama::ModelWeights;
use greenmark::engine::{LogitsAt, Model, Sequence};

#[path = "../tests/support/mod.rs"]
mod support;

const PROMPT: usize = 32;
const TOKENS: usize = 128;
const RUNS: usize = 3;

/// Seconds for the prompt and for the tokens after it.
type Times = (f64, f64);

fn main() {
    if let (Some(engine), Some(path)) =
        (std::env::var_os("DECODE_ENGINE"), std::env::var_os("DECODE_MODEL"))
    {
        let path = PathBuf::from(path);
        let (prompt, decode) = if engine == "candle" { candle(&path) } else { ours(&path) };
        println!("{prompt} {decode}");
        return;
    }
    let path = support::default_model();
    println!("{}: prompt {PROMPT}, then {TOKENS} tokens", path.display());
    println!("threads  engine      prompt tok/s  decode tok/s");
    for threads in ["1", "2"] {
        let own = child("ours", threads, &path);
        let other = child("candle", threads, &path);
        for (name, (prompt, decode)) in [("greenmark", own), ("candle", other)] {
            println!(
                "{threads:>7}  {name:<10}  {:>12.1}  {:>12.1}",
                PROMPT as f64 / prompt,
                TOKENS as f64 / decode
            );
        }
        println!(
            "{threads:>7}  {:<10}  {:>12.2}  {:>12.2}",
            "ratio",
            other.0 / own.0,
            other.1 / own.1
        );
    }
}

fn child(engine: &str, threads: &str, path: &Path) -> Times {
    let output = Command::new(std::env::current_exe().expect("a running program has a path"))
        .env("DECODE_ENGINE", engine)
        .env("DECODE_MODEL", path)
        .env("RAYON_NUM_THREADS", threads)
        .env("CANDLE_NUM_THREADS", threads)
        .output()
        .expect("the bench can start itself");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = text.split_whitespace().map(|n| n.parse().expect("a number"));
    (numbers.next().expect("prompt time"), numbers.next().expect("decode time"))
}

fn prompt() -> Vec<u32> {
    (0..PROMPT).map(|i| 1000 + 37 * u32::try_from(i).expect("small")).collect()
}

fn argmax(logits: &[f32]) -> u32 {
    let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
    u32::try_from(best.expect("a vocabulary")).expect("ids are u32")
}

fn fastest(mut run: impl FnMut() -> Times) -> Times {
    let runs: Vec<Times> = (0..RUNS).map(|_| run()).collect();
    let least = |pick: fn(&Times) -> f64| runs.iter().map(pick).fold(f64::INFINITY, f64::min);
    (least(|t| t.0), least(|t| t.1))
}

fn ours(path: &Path) -> Times {
    let model = Model::load(path, Device::Cpu).expect("the model loads");
    fastest(|| {
        let mut cache = model.new_cache(PROMPT + TOKENS).expect("a cache");
        let mut step = |ids: &[u32]| {
            let mut batch = [Sequence { ids, cache: &mut cache, logits: LogitsAt::Last }];
            let logits = model.forward(&mut batch).expect("a pass");
            argmax(logits[0].last().expect("a row"))
        };
        let start = Instant::now();
        let mut next = step(&prompt());
        let after_prompt = Instant::now();
        for _ in 0..TOKENS {
            next = step(&[next]);
        }
        (after_prompt.duration_since(start).as_secs_f64(), after_prompt.elapsed().as_secs_f64())
    })
}

fn candle(path: &Path) -> Times {
    let mut file = std::fs::File::open(path).expect("the model opens");
    let content = gguf_file::Content::read(&mut file).expect("the model reads");
    let mut model =
        ModelWeights::from_gguf(content, &mut file, &Device::Cpu).expect("the model loads");
    fastest(|| {
        let mut position = 0;
        let mut step = |ids: &[u32]| {
            let input = Tensor::new(ids, &Device::Cpu).and_then(|t| t.unsqueeze(0)).expect("ids");
            let logits = model.forward(&input, position).expect("a pass");
            position += ids.len();
            argmax(&logits.flatten_all().and_then(|t| t.to_vec1()).expect("a row"))
        };
        let start = Instant::now();
        let mut next = step(&prompt());
        let after_prompt = Instant::now();
        for _ in 0..TOKENS {
            next = step(&[next]);
        }
        (after_prompt.duration_since(start).as_secs_f64(), after_prompt.elapsed().as_secs_f64())
    })
}
