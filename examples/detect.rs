//! Tests a text for a mark through the library; no model is loaded and candle is not needed.
//!
//! `cargo run --no-default-features --example detect -- TOKENIZER KEY_FILE TEXT_FILE`, where
//! TOKENIZER is a `tokenizer.json` or a GGUF file.

use std::path::Path;
use std::sync::Arc;

use greenmark::detect::DetectOptions;
use greenmark::document::{Circumstances, Detector, identify};
use greenmark::prf::Key;
use greenmark::profile::{KeyIdentity, Profile, SchemeParameters};
use greenmark::text::Tokenizer;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [tokenizer, key, file] = arguments.as_slice() else {
        return Err("usage: detect TOKENIZER KEY_FILE TEXT_FILE".into());
    };
    let tokenizer = Arc::new(Tokenizer::open(tokenizer)?);
    let key = Key::read(key.as_ref())?;

    let scheme = SchemeParameters::default();
    let identity = KeyIdentity { id: "example".to_owned(), fingerprint: key.fingerprint() };
    let profile = Profile::new(scheme, scheme.default_context(), identify(&tokenizer), identity)?;
    let detector = Detector::new(tokenizer, profile, &key, DetectOptions::default())?;

    let report =
        detector.bytes(Path::new(file), &std::fs::read(file)?, &Circumstances::default())?;
    println!("{}", serde_json::to_string_pretty(&report)?);
    Ok(())
}
