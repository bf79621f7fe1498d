//! What the tests of the chain share.

use std::sync::Arc;

use greenmark::prf::ChaCha8Stream;
use greenmark::sample::{Chain, Draw, History, SamplingOptions, Scratch, Trace};
use greenmark::scheme::Step;
use greenmark::token::{TokenId, TokenSet};

/// Options out of JSON, the way a request gives them.
pub(crate) fn options(json: serde_json::Value) -> SamplingOptions {
    serde_json::from_value(json).expect("sampling options")
}

/// A chain over `vocab` ids that marks every id.
pub(crate) fn chain(options: SamplingOptions, vocab: usize) -> Chain {
    Chain::new(options, vocab, &[], Arc::new(TokenSet::empty(vocab))).expect("a valid chain")
}

/// The draw of `seed` at step 0.
pub(crate) fn draw(seed: u64) -> Draw {
    Draw { seed, sample: 0, step: 0 }
}

/// A traced step without mark and history.
pub(crate) fn trace(json: serde_json::Value, logits: &[f32]) -> Trace {
    trace_with(json, logits, &History::new(&[]), Step::KEEP)
}

/// A traced step.
pub(crate) fn trace_with(
    json: serde_json::Value,
    logits: &[f32],
    history: &History,
    step: Step,
) -> Trace {
    chain(options(json), logits.len())
        .trace(logits, history, step, draw(1), &mut Scratch::new())
        .expect("a token")
}

/// The ids after the last member, all of them where no member acts.
pub(crate) fn kept(trace: &Trace) -> Vec<TokenId> {
    trace.probabilities.keys().copied().collect()
}

/// The final probability of each of `0..n`.
pub(crate) fn probabilities(trace: &Trace, n: u32) -> Vec<f64> {
    (0..n).map(|id| trace.probabilities.get(&id).copied().unwrap_or(0.0)).collect()
}

/// The logits of a distribution.
pub(crate) fn ln(probabilities: &[f64]) -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "logits are f32")]
    probabilities.iter().map(|p| p.ln() as f32).collect()
}

/// Whether all of `found` are within `tolerance` of `expected`.
pub(crate) fn close(found: &[f64], expected: &[f64], tolerance: f64) -> bool {
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance)
}

/// Bell-shaped logits, multiples of 1/256 roughly within ±8, the same for the same `seed`.
pub(crate) fn logits(seed: u8, vocab: usize) -> Vec<f32> {
    let words = ChaCha8Stream::new(&[seed; 32]).words(4 * vocab);
    let bell = |four: &[u32]| four.iter().map(|word| f64::from(word >> 20) - 2047.5).sum::<f64>();
    #[expect(clippy::cast_possible_truncation, reason = "logits are f32")]
    words
        .chunks_exact(4)
        .map(|four| (bell(four) * 2.0 / 1024.0 * 256.0).round() as f32 / 256.0)
        .collect()
}
