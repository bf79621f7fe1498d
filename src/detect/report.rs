//! The report: the same value on the command line, over HTTP and in a file.
//!
//! Field names and their order are a contract (`schema`). No number in it is NaN or infinite, and
//! a `null` always has a status beside it.

use serde::Serialize;
use serde_json::Value;

use crate::detect::entropy::EntropyReport;
use crate::detect::{Correction, SentenceReport, Skip, Skipped};
use crate::error::{Error, Result};
use crate::profile::Profile;
use crate::stats::PValue;

/// The version of the report's form.
pub const SCHEMA: &str = "greenmark/report/1";

/// What a detection concludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The text would be this surprising without the key in at most a share alpha of cases.
    Watermarked,
    /// No mark of this key was found. This does not say that a human wrote the text.
    NotDetected,
    /// Too few tokens to conclude anything.
    Insufficient,
}

impl Verdict {
    /// The verdict for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Watermarked => "watermarked",
            Self::NotDetected => "not detected",
            Self::Insufficient => "insufficient",
        }
    }
}

/// Something a reader should know before relying on the verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// A stable name.
    pub code: &'static str,
    /// A plain sentence.
    pub text: String,
}

/// How the statistic of a test is made up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EvidenceSummary {
    /// Green tokens among the scored.
    Count {
        /// Green tokens.
        green: u64,
        /// Chance of green under the null.
        expected_rate: f64,
    },
    /// A sum of scores.
    Sum {
        /// The sum.
        sum: f64,
        /// Its mean under the null.
        mean: f64,
        /// Its variance under the null.
        variance: f64,
    },
}

/// One test that was made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TestReport {
    /// The scheme and, in brackets, the normalisation of a further look and `best window`.
    pub name: String,
    /// The scheme's name.
    pub profile: &'static str,
    /// The key.
    pub key_fingerprint: String,
    /// Transformations before encoding, joined by `+`; `none` for the text as given.
    pub normalization: String,
    /// Tokens counted.
    pub scored: u64,
    /// Tokens that would count if repeats did.
    pub raw: u64,
    /// Green tokens or the sum of the scores.
    pub statistic: f64,
    /// Effect size.
    pub z: Option<f64>,
    /// The status of a missing z.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub z_status: Option<&'static str>,
    /// One-sided p of this test alone: exact, but an upper bound for the likelihood ratio.
    pub p_value: PValue,
    /// The status of a missing p.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_status: Option<&'static str>,
    /// Its decimal logarithm.
    pub log10_p: f64,
    /// Decimal logarithm after paying for every test of the report.
    pub corrected_log10_p: f64,
    /// What the statistic is made of.
    pub evidence: EvidenceSummary,
}

impl TestReport {
    /// Whether the figures at the top of `report` are those of this test. The first such test of
    /// the report decides.
    #[must_use]
    pub fn decides(&self, report: &Report) -> bool {
        self.scored == report.scored
            && self.log10_p.total_cmp(&report.log10_p).is_eq()
            && self.corrected_log10_p.total_cmp(&report.corrected_log10_p).is_eq()
    }
}

/// A stretch of the text with a test of its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Region {
    /// The look it belongs to, as in [`TestReport::normalization`].
    pub normalization: String,
    /// Token range, from the first scored token to one behind the last.
    pub tokens: [usize; 2],
    /// Byte range in the original text; absent for ids given without text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<[usize; 2]>,
    /// Character range in the original text; absent for ids given without text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chars: Option<[usize; 2]>,
    /// Tokens counted.
    pub scored: u64,
    /// Green tokens (counting schemes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub green: Option<u64>,
    /// Effect size.
    pub z: f64,
    /// Exact one-sided p of this region alone: not the chance of finding such a region.
    pub p_value: PValue,
    /// The status of a missing p.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_status: Option<&'static str>,
    /// Its decimal logarithm.
    pub log10_p: f64,
    /// Decimal logarithm of the p corrected for all windows of the text and every other test of
    /// the report; to be held against alpha.
    pub corrected_log10_p: f64,
    /// Number of windows of the sequence.
    pub windows: u64,
    /// Number of tests paid for: the windows, times looks, times families of tests, times
    /// profiles.
    pub hypotheses: u64,
    /// How the windows are paid for.
    pub correction: Correction,
}

/// One token of the text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TokenDetail {
    /// Place in the sequence, from 0.
    pub index: usize,
    /// Token id.
    pub id: u32,
    /// Byte range in the original text; absent for ids given without text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<[usize; 2]>,
    /// Character range in the original text; absent for ids given without text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chars: Option<[usize; 2]>,
    /// `green`, `red` or `scored`; `skipped` with the reason beside it.
    pub colour: &'static str,
    /// The score of a token that counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Skip>,
    /// Entropy of the model's distribution before it, in nats, when measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy: Option<f64>,
    /// Spike entropy of that distribution for the profile's gamma and delta.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spike_entropy: Option<f64>,
    /// Its probability under that distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Its weight in the likelihood-ratio test, from 0 to delta.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
}

/// The outcome of a detection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The conclusion.
    pub verdict: Verdict,
    /// Effect size of the deciding test.
    pub z: Option<f64>,
    /// The status of a missing z.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub z_status: Option<&'static str>,
    /// One-sided p of the deciding test alone: exact, but an upper bound for the likelihood ratio.
    pub p_value: PValue,
    /// The status of a missing p.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_status: Option<&'static str>,
    /// Its decimal logarithm.
    pub log10_p: f64,
    /// Decimal logarithm after paying for every test of the report, and for all profiles that the
    /// text was held against.
    pub corrected_log10_p: f64,
    /// Number of tests paid for.
    pub hypotheses: u64,
    /// The accepted rate of false accusations.
    pub alpha: f64,
    /// Tokens in the text.
    pub tokens: u64,
    /// Tokens counted.
    pub scored: u64,
    /// Tokens that a count of green ones would have to score to conclude anything: the smallest
    /// number that, all being green, reaches alpha after every correction of this report, or the
    /// asked minimum when that is larger. Only in `insufficient` reports of counting schemes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needed: Option<u64>,
    /// Green tokens (counting schemes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub green: Option<u64>,
    /// Green share of the scored (counting schemes; absent when nothing was scored).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub green_fraction: Option<f64>,
    /// The profile's green share (counting schemes); the chance that the test is computed with is
    /// `expected_rate` of its evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// Tokens left out, by reason.
    pub skipped: Skipped,
    /// Every test made.
    pub tests: Vec<TestReport>,
    /// The most surprising window of each look that has one above chance; empty unless windows
    /// were asked for.
    pub windows: Vec<Region>,
    /// All disjoint regions of the deciding look whose corrected p is at most alpha, in the order
    /// of the text; empty unless windows were asked for.
    pub spans: Vec<Region>,
    /// Every sentence of the text as given, when asked for: a reading aid that decides nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentences: Option<Vec<SentenceReport>>,
    /// What the model's uncertainty says about the text as given; absent unless it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy: Option<EntropyReport>,
    /// Every token of the text as given, when asked for; the totals above are those of the
    /// deciding test, which may be another look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_details: Option<Vec<TokenDetail>>,
    /// The profile tested.
    pub profile: Profile,
    /// The key's name.
    pub key_id: String,
    /// The key's fingerprint.
    pub key_fingerprint: String,
    /// The tokenizer's fingerprint.
    pub tokenizer: String,
    /// SHA-256 of the input as given.
    pub input_sha256: String,
    /// What a reader should know.
    pub warnings: Vec<Warning>,
    /// Sampling parameters from a sidecar, when one was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<Value>,
    /// The version of this library.
    pub version: &'static str,
}

impl Report {
    /// The report as a document: indented JSON and a newline, as the command line prints it and
    /// the service sends it.
    ///
    /// # Errors
    /// [`Error::Backend`], which no report is known to cause.
    pub fn document(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)
            .map_err(|source| Error::backend("writing the report as JSON", source))?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}
