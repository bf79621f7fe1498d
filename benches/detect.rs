//! How many texts of 1 kB a detector judges in a second, report written as JSON: what a service is
//! held against. Run: `cargo bench --bench detect --profile dev`; needs no model.
//!
//! Rows are for 1 thread and for one a core, under the default profile and the tokenizer that
//! `WM_TOKENIZER` names (a file or folder), else the tiny one of this repository, which has more
//! tokens in a text.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use greenmark::detect::DetectOptions;
use greenmark::document::{Circumstances, Detector, identify};
use greenmark::prf::Key;
use greenmark::profile::{KeyIdentity, Profile, SchemeParameters};
use greenmark::text::Tokenizer;

const TIME: Duration = Duration::from_secs(5);
const LENGTH: usize = 1000;

type Fault = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Fault> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let file = std::env::var_os("WM_TOKENIZER")
        .map_or_else(|| root.join("data/models/tokenizer-300.json"), PathBuf::from);
    let tokenizer = Arc::new(Tokenizer::open(&file)?);
    let key = Key::from_bytes([7; 32]);
    let parameters = SchemeParameters::default();
    let identity = KeyIdentity { id: "bench".to_owned(), fingerprint: key.fingerprint() };
    let profile =
        Profile::new(parameters, parameters.default_context(), identify(&tokenizer), identity)?;
    let detector = Detector::new(tokenizer, profile, &key, DetectOptions::default())?;
    let texts = texts(&root)?;
    let tokens = detector.text(&texts[0], &Circumstances::default())?.tokens;
    println!(
        "{}: {} texts of {LENGTH} bytes, the first {tokens} tokens",
        file.display(),
        texts.len()
    );
    let cores = thread::available_parallelism().map_or(1, usize::from);
    for threads in [1, cores] {
        println!("{threads} threads: {:.0} texts/s", rate(&detector, &texts, threads)?);
    }
    Ok(())
}

/// Human passages, each cut to the length.
fn texts(root: &std::path::Path) -> Result<Vec<String>, Fault> {
    let lines = std::fs::read_to_string(root.join("data/human/passages.jsonl"))?;
    let mut texts = Vec::new();
    for line in lines.lines() {
        let passage: serde_json::Value = serde_json::from_str(line)?;
        let text = passage["text"].as_str().unwrap_or_default();
        if let Some(text) = text.get(..LENGTH) {
            texts.push(text.to_owned());
        }
    }
    if texts.is_empty() { Err("no passage is long enough".into()) } else { Ok(texts) }
}

fn rate(detector: &Detector, texts: &[String], threads: usize) -> Result<f64, Fault> {
    let judged = AtomicU64::new(0);
    let started = Instant::now();
    thread::scope(|scope| {
        let work = || -> Result<(), Fault> {
            for text in texts.iter().cycle() {
                if started.elapsed() > TIME {
                    break;
                }
                let report = detector.text(text, &Circumstances::default())?.document()?;
                std::hint::black_box(report);
                judged.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(_) => Err("a thread panicked".into()),
        })
    })?;
    Ok(judged.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}
