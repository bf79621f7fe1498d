//! Marked text of the default model inside human text: `data/marked` in `data/human`.

use std::sync::Arc;

use greenmark::detect::{DetectOptions, Report, Verdict, WindowSearch};
use greenmark::document::{Circumstances, Detector, identify};
use greenmark::prf::Key;
use greenmark::profile::{KeyIdentity, Profile, SchemeParameters};
use greenmark::text::Tokenizer;
use serde_json::Value;

use crate::support::default_model;

/// The key of `data/marked`: nothing but this test rests on it.
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn texts(name: &str) -> Vec<String> {
    let path = format!("{}/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let lines = std::fs::read_to_string(path).unwrap();
    let text = |line: &str| -> String {
        serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap().to_owned()
    };
    lines.lines().map(text).collect()
}

fn detector(windows: WindowSearch) -> Detector {
    let tokenizer = Arc::new(Tokenizer::open(default_model()).unwrap());
    let key = Key::from_hex(KEY).unwrap();
    let scheme = SchemeParameters::default();
    let identity = KeyIdentity { id: "test".into(), fingerprint: key.fingerprint() };
    let profile =
        Profile::new(scheme, scheme.default_context(), identify(&tokenizer), identity).unwrap();
    Detector::new(tokenizer, profile, &key, DetectOptions { windows, ..DetectOptions::default() })
        .unwrap()
}

/// The first `tokens` tokens of `text`.
fn head(tokenizer: &Tokenizer, text: &str, tokens: usize) -> String {
    let pieces = tokenizer.encode(text).unwrap();
    let end = pieces.get(tokens).map_or(text.len(), |piece| piece.bytes.start);
    let whole = (0..=end).rev().find(|&end| text.is_char_boundary(end)).unwrap();
    text[..whole].to_owned()
}

#[test]
fn marked_text_pasted_into_human_text_is_found_where_it_stands() {
    let (whole, windows) = (detector(WindowSearch::Off), detector(WindowSearch::On));
    let human = texts("human/passages.jsonl");
    let marked = texts("marked/smollm2.jsonl");
    let judge = |detector: &Detector, text: &str| -> Report {
        detector.text(text, &Circumstances::default()).unwrap()
    };
    for (tokens, at_least) in [(120, 18), (60, 2)] {
        let (mut by_whole, mut by_windows, mut overlap) = (0, 0, 0.0);
        for (i, text) in marked.iter().enumerate() {
            let text = head(windows.tokenizer(), text, tokens);
            // Between two passages of some 300 tokens each.
            let before = format!("{}\n\n", human[2 * i]);
            let pasted = format!("{before}{text}\n\n{}", human[2 * i + 1]);
            by_whole += u32::from(judge(&whole, &pasted).verdict == Verdict::Watermarked);
            let report = judge(&windows, &pasted);
            by_windows += u32::from(report.verdict == Verdict::Watermarked);
            let [from, to] = report.windows[0].bytes.unwrap();
            let shared = to.min(before.len() + text.len()).saturating_sub(from.max(before.len()));
            let either = to.max(before.len() + text.len()) - from.min(before.len());
            overlap += shared as f64 / either as f64 / marked.len() as f64;
        }
        println!(
            "{tokens} marked tokens inside two human passages: {by_windows} of {} found with \
             windows, {by_whole} without; the best window and the mark share {:.0}% of their union",
            marked.len(),
            100.0 * overlap
        );
        assert!(by_windows >= at_least && by_windows > by_whole, "{by_windows} {by_whole}");
        assert!(overlap > 0.5, "{overlap}");
    }
}

#[test]
fn no_window_of_a_human_passage_is_called_marked() {
    let windows = detector(WindowSearch::On);
    let mut smallest = 0.0_f64;
    for text in texts("human/passages.jsonl") {
        let report = windows.text(&text, &Circumstances::default()).unwrap();
        assert_eq!(report.verdict, Verdict::NotDetected);
        assert!(report.spans.is_empty());
        smallest = smallest.min(report.windows[0].corrected_log10_p);
    }
    println!("smallest corrected log10 p of 200 human passages: {smallest:.2}");
    // 200 texts: P(any at 2.5e-5) = 0.5%.
    assert!(smallest > -4.6);
}
