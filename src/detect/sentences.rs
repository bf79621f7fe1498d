//! A test of every sentence, as a reading aid.
//!
//! No verdict depends on these tests, and none of them is paid for by the verdict. Each sentence's
//! p is that of its own scored tokens; the corrected one is Bonferroni's over all sentences that
//! hold a scored token, under every profile that the text is held against, so that the smallest of them is at most alpha in at most a share alpha of
//! unmarked texts.

use std::num::NonZeroU64;
use std::ops::Range;

use serde::Serialize;

use crate::detect::{Look, Outcome, Test};
use crate::scheme::Null;
use crate::stats::PValue;

/// Where a sentence stands in the original text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentenceRange {
    /// Bytes, without the white space around the sentence.
    pub bytes: Range<usize>,
    /// The same in characters.
    pub chars: Range<usize>,
}

/// The test of one sentence of the text as given.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SentenceReport {
    /// Place in the text, from 0.
    pub index: usize,
    /// Byte range in the original text, without the white space around the sentence.
    pub bytes: [usize; 2],
    /// Character range in the original text.
    pub chars: [usize; 2],
    /// Range of the tokens that start in the sentence or in the white space before it.
    pub tokens: [usize; 2],
    /// Tokens counted among them; repeats of earlier sentences are not.
    pub scored: u64,
    /// Green tokens (counting schemes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub green: Option<u64>,
    /// Green tokens or the sum of the scores.
    pub statistic: f64,
    /// Effect size.
    pub z: Option<f64>,
    /// The status of a missing z.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub z_status: Option<&'static str>,
    /// Exact one-sided p of the sentence alone; 1 when nothing was scored.
    pub p_value: PValue,
    /// The status of a missing p.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_status: Option<&'static str>,
    /// Its decimal logarithm.
    pub log10_p: f64,
    /// Decimal logarithm of the p corrected for all sentences tested.
    pub corrected_log10_p: f64,
    /// Number of sentences that the correction pays for: those with a scored token, times the
    /// profiles.
    pub hypotheses: u64,
}

/// Tests the sentences of `look`, which are in order and do not overlap, in a text that is held
/// against this number of `profiles`.
///
/// A token belongs to the sentence in which it starts, or to the next one when it starts between
/// two: most tokenizers join a space to the word behind it. What follows the last sentence belongs
/// to it.
#[must_use]
pub fn test_sentences(
    null: Null,
    look: &Look,
    sentences: &[SentenceRange],
    profiles: NonZeroU64,
) -> Vec<SentenceReport> {
    let mut from = 0;
    let tests: Vec<(Range<usize>, u64, Test)> = sentences
        .iter()
        .enumerate()
        .map(|(index, sentence)| {
            let to = if index + 1 == sentences.len() {
                look.pieces.len()
            } else {
                look.pieces.partition_point(|piece| piece.bytes.start < sentence.bytes.end)
            };
            let tokens = from..to.max(from);
            from = tokens.end;
            let scores = || {
                look.evidence.outcomes[tokens.clone()].iter().filter_map(|outcome| match outcome {
                    Outcome::Scored(score) => Some(*score),
                    Outcome::Skipped(_) => None,
                })
            };
            let scored = scores().count() as u64;
            let test = Test::of(null, scored, scores().sum());
            (tokens, scored, test)
        })
        .collect();
    let counted = tests.iter().filter(|(_, scored, _)| *scored > 0).count() as u64;
    let hypotheses = profiles.get().saturating_mul(counted);
    tests
        .into_iter()
        .zip(sentences)
        .enumerate()
        .map(|(index, ((tokens, scored, test), sentence))| SentenceReport {
            index,
            bytes: [sentence.bytes.start, sentence.bytes.end],
            chars: [sentence.chars.start, sentence.chars.end],
            tokens: [tokens.start, tokens.end],
            scored,
            green: null.counts().then(|| test.green()),
            // An empty sum is -0.
            statistic: test.statistic + 0.0,
            z: test.z,
            z_status: test.z_status(),
            p_value: test.p.p_value(),
            p_status: test.p.p_value().status(),
            log10_p: test.p.log10(),
            corrected_log10_p: test.p.corrected(hypotheses).log10(),
            hypotheses,
        })
        .collect()
}
