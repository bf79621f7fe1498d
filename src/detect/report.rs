//! The report: the same value on the command line, over HTTP and in a file.
//!
//! Field names and their order are a contract (`schema`). No number in it is NaN or infinite, and
//! a `null` always has a status beside it.

use serde::Serialize;
use serde_json::Value;

use crate::detect::evidence::is_green;
use crate::detect::options::DetectOptions;
use crate::detect::{Evidence, Look, Outcome, Skip, Skipped, Test, TokenDetails};
use crate::profile::{Gamma, Profile};
use crate::scheme::{Null, Scheme};
use crate::stats::PValue;
use crate::token::Piece;

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
    /// The scheme and, when more than one look was taken, the normalisation.
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
    /// Exact one-sided p of this test alone.
    pub p_value: PValue,
    /// The status of a missing p.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_status: Option<&'static str>,
    /// Its decimal logarithm.
    pub log10_p: f64,
    /// What the statistic is made of.
    pub evidence: EvidenceSummary,
}

/// A stretch of the text with a test of its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Region {
    /// Byte range in the original text.
    pub bytes: [usize; 2],
    /// Character range in the original text.
    pub chars: [usize; 2],
    /// Tokens counted.
    pub scored: u64,
    /// Effect size.
    pub z: f64,
    /// Decimal logarithm of the p corrected for all regions looked at.
    pub corrected_log10_p: f64,
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
    /// Exact one-sided p of the deciding test alone.
    pub p_value: PValue,
    /// The status of a missing p.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_status: Option<&'static str>,
    /// Its decimal logarithm.
    pub log10_p: f64,
    /// Decimal logarithm after paying for every look.
    pub corrected_log10_p: f64,
    /// Number of looks paid for.
    pub hypotheses: u64,
    /// The accepted rate of false accusations.
    pub alpha: f64,
    /// Tokens in the text.
    pub tokens: u64,
    /// Tokens counted.
    pub scored: u64,
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
    /// The best windows; empty unless windows were asked for.
    pub windows: Vec<Region>,
    /// Disjoint significant regions; empty unless windows were asked for.
    pub spans: Vec<Region>,
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

/// What a report says beside its tests.
#[derive(Clone, Debug)]
pub struct ReportContext<'a> {
    /// The profile under which the scheme was built.
    pub profile: &'a Profile,
    /// SHA-256 of the input as given, in hexadecimal digits.
    pub input_sha256: String,
    /// Where each token of the first look stands; empty for bare ids.
    pub pieces: &'a [Piece],
    /// The ids of the first look.
    pub ids: &'a [u32],
    /// What was noticed on the way.
    pub warnings: Vec<Warning>,
    /// Sampling parameters from a sidecar.
    pub generation: Option<Value>,
}

impl Report {
    /// Tests every look, takes the most surprising one, pays for all of them and concludes.
    ///
    /// `looks` is not empty: the text as given always is the first.
    #[must_use]
    pub fn new(
        scheme: &dyn Scheme,
        looks: &[Look],
        options: &DetectOptions,
        context: ReportContext<'_>,
    ) -> Self {
        let null = scheme.null();
        let tests: Vec<Test> = looks.iter().map(|look| Test::new(null, &look.evidence)).collect();
        let deciding = deciding(looks, &tests, options);
        let (test, evidence) = (tests[deciding], &looks[deciding].evidence);
        let hypotheses = looks.len() as u64;
        let corrected = test.p.corrected(hypotheses);
        let green = green_count(null, evidence);
        let key_fingerprint = context.profile.key().fingerprint.to_string();
        Self {
            schema: SCHEMA,
            verdict: conclude(&test, evidence.scored, hypotheses, options),
            z: test.z,
            z_status: z_status(&test),
            p_value: test.p.p_value(),
            p_status: test.p.p_value().status(),
            log10_p: test.p.log10(),
            corrected_log10_p: corrected.log10(),
            hypotheses,
            alpha: options.alpha.value(),
            tokens: evidence.outcomes.len() as u64,
            scored: evidence.scored,
            green,
            green_fraction: green
                .filter(|_| evidence.scored > 0)
                .map(|green| green as f64 / evidence.scored as f64),
            gamma: context.profile.scheme().gamma().map(Gamma::get),
            skipped: evidence.skipped,
            tests: looks
                .iter()
                .zip(&tests)
                .map(|(look, test)| test_report(scheme, look, test, &key_fingerprint))
                .collect(),
            windows: Vec::new(),
            spans: Vec::new(),
            token_details: (options.details == TokenDetails::Include)
                .then(|| token_details(null, &looks[0].evidence, &context)),
            key_id: context.profile.key().id.clone(),
            key_fingerprint,
            tokenizer: context.profile.tokenizer().fingerprint.clone(),
            profile: context.profile.clone(),
            input_sha256: context.input_sha256,
            warnings: context.warnings,
            generation: context.generation,
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// Whether a look has enough tokens to conclude anything.
fn is_sufficient(test: &Test, scored: u64, hypotheses: u64, options: &DetectOptions) -> bool {
    let alpha = options.alpha.log();
    let within_reach = test.best_attainable.is_none_or(|best| best.corrected(hypotheses) <= alpha);
    scored > 0 && scored >= options.min_scored && within_reach
}

/// The place of the smallest p among the looks that can conclude anything, or among all when none
/// can; the first of equals.
fn deciding(looks: &[Look], tests: &[Test], options: &DetectOptions) -> usize {
    let hypotheses = looks.len() as u64;
    let rank = |at: usize| {
        let short = !is_sufficient(&tests[at], looks[at].evidence.scored, hypotheses, options);
        (short, tests[at].p.ln())
    };
    (1..tests.len()).fold(0, |best, at| if rank(at) < rank(best) { at } else { best })
}

fn conclude(test: &Test, scored: u64, hypotheses: u64, options: &DetectOptions) -> Verdict {
    if !is_sufficient(test, scored, hypotheses, options) {
        Verdict::Insufficient
    } else if test.p.corrected(hypotheses) <= options.alpha.log() {
        Verdict::Watermarked
    } else {
        Verdict::NotDetected
    }
}

fn z_status(test: &Test) -> Option<&'static str> {
    test.z.is_none().then_some("nothing_scored")
}

fn green_count(null: Null, evidence: &Evidence) -> Option<u64> {
    match null {
        Null::Bernoulli(_) => Some(evidence.green()),
        Null::Exponential => None,
    }
}

fn test_report(scheme: &dyn Scheme, look: &Look, test: &Test, key_fingerprint: &str) -> TestReport {
    let scored = look.evidence.scored as f64;
    let normalization = if look.normalization.is_empty() {
        "none".to_owned()
    } else {
        look.normalization.join("+")
    };
    TestReport {
        name: if look.normalization.is_empty() {
            scheme.name().to_owned()
        } else {
            format!("{} ({normalization})", scheme.name())
        },
        profile: scheme.name(),
        key_fingerprint: key_fingerprint.to_owned(),
        normalization,
        scored: look.evidence.scored,
        raw: look.evidence.raw,
        statistic: test.statistic,
        z: test.z,
        z_status: z_status(test),
        p_value: test.p.p_value(),
        p_status: test.p.p_value().status(),
        log10_p: test.p.log10(),
        evidence: match (scheme.null(), green_count(scheme.null(), &look.evidence)) {
            (Null::Bernoulli(expected_rate), Some(green)) => {
                EvidenceSummary::Count { green, expected_rate }
            }
            _ => EvidenceSummary::Sum { sum: test.statistic, mean: scored, variance: scored },
        },
    }
}

fn token_details(null: Null, evidence: &Evidence, context: &ReportContext<'_>) -> Vec<TokenDetail> {
    evidence
        .outcomes
        .iter()
        .zip(context.ids)
        .enumerate()
        .map(|(index, (outcome, &id))| {
            let piece = context.pieces.get(index);
            let (colour, score, skipped) = match (*outcome, null) {
                (Outcome::Skipped(skip), _) => ("skipped", None, Some(skip)),
                (Outcome::Scored(score), Null::Bernoulli(_)) => {
                    (if is_green(score) { "green" } else { "red" }, Some(score), None)
                }
                (Outcome::Scored(score), Null::Exponential) => ("scored", Some(score), None),
            };
            TokenDetail {
                index,
                id,
                bytes: piece.map(|piece| [piece.bytes.start, piece.bytes.end]),
                chars: piece.map(|piece| [piece.chars.start, piece.chars.end]),
                colour,
                score,
                skipped,
            }
        })
        .collect()
}
