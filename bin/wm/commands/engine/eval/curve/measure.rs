//! One setting in numbers: what the texts are worth, and how often a detector finds the mark.
//!
//! Every text is judged as a reader has it: decoded, encoded again, without the prompt.

use std::f64::consts::LN_10;

use anyhow::Result;
use greenmark::detect::{DetectOptions, EvidenceSummary, Report};
use greenmark::document::{Attack, AttackSeed, Circumstances, Detector, Share, distinct_ngrams};
use greenmark::engine::Generation;
use greenmark::prf::{ChaCha8Stream, PrfTag, draw_seed};
use greenmark::stats::{LogProbability, MeanInterval, Tails, clopper_pearson};
use greenmark::token::TokenId;
use rayon::prelude::*;
use serde::Serialize;

use super::plan::{Plan, RATES, Setting, log_rates, shares, text_key};
use crate::commands::engine::loaded::Loaded;

/// Of every interval.
pub(super) const CONFIDENCE: f64 = 0.95;

const EDGE_TAG: PrfTag = PrfTag::new("greenmark/eval-edge/1");

/// A setting in numbers.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) setting: Setting,
    /// Under the model without the mark: exp of the mean over the texts of their mean surprisal.
    pub(super) perplexity: MeanInterval,
    /// Share of a text's 4-grams that stood in it before, mean over the texts.
    pub(super) repeated_4grams: Option<MeanInterval>,
    /// Share of distinct 2-grams among a text's 2-grams, mean over the texts.
    pub(super) distinct_2grams: Option<MeanInterval>,
    /// Texts whose ids change by decoding and encoding.
    pub(super) changed_by_round_trip: usize,
    pub(super) by_length: Vec<AtLength>,
    pub(super) attacks: Vec<AfterAttack>,
}

/// Detection in the first tokens of each text.
#[derive(Serialize)]
pub(super) struct AtLength {
    pub(super) tokens: usize,
    #[serde(flatten)]
    pub(super) found: Found,
}

/// Detection in the whole texts after an attack.
#[derive(Serialize)]
pub(super) struct AfterAttack {
    pub(super) attack: &'static str,
    pub(super) share: Share,
    #[serde(flatten)]
    pub(super) found: Found,
}

/// How often the mark was found.
#[derive(Serialize)]
pub(super) struct Found {
    /// Tokens that the detector counted, mean over the texts.
    pub(super) mean_scored: f64,
    /// One entry for each of [`RATES`].
    pub(super) rates: Vec<Detection>,
}

/// A share of texts with its exact interval (Clopper and Pearson).
#[derive(Serialize)]
pub(super) struct Detection {
    pub(super) false_positive_rate: f64,
    pub(super) detected: u64,
    pub(super) rate: f64,
    pub(super) lower: f64,
    pub(super) upper: f64,
}

/// What every setting is measured with.
pub(super) struct Bench<'a> {
    loaded: &'a Loaded,
    seed: u64,
    lengths: &'a [usize],
    shares: Vec<Share>,
    /// The tokens that substitutions are drawn from.
    pool: Vec<TokenId>,
}

/// What a detector finds in one text.
struct Finding {
    scored: u64,
    /// Whether it rejects at each of [`RATES`].
    rejects: [bool; RATES.len()],
}

impl<'a> Bench<'a> {
    pub(super) fn new(loaded: &'a Loaded, plan: &'a Plan, pool: Vec<TokenId>) -> Result<Self> {
        let (seed, lengths) = (plan.seed, plan.lengths.as_slice());
        Ok(Self { loaded, seed, lengths, shares: shares()?, pool })
    }

    pub(super) fn row(&self, setting: Setting, texts: &[Generation]) -> Result<Row> {
        let surprisal = |text: &Generation| {
            let sum: f64 = text.steps.iter().map(|step| f64::from(step.raw_logprob)).sum();
            -sum / text.steps.len() as f64
        };
        let ngrams = |n: usize, shape: fn(f64) -> f64| {
            let of = |text: &Generation| distinct_ngrams(&text.ids, n).map(shape);
            let samples: Option<Vec<f64>> = texts.iter().map(of).collect();
            let interval = samples.and_then(|samples| MeanInterval::new(&samples, CONFIDENCE));
            // No mean of shares lies outside.
            interval.map(|interval| interval.map(|end| end.clamp(0.0, 1.0)))
        };
        let surprisals: Vec<f64> = texts.iter().map(surprisal).collect();
        let attacks = self.attacks();
        let findings = (0..u32::MAX)
            .zip(texts)
            .collect::<Vec<_>>()
            .into_par_iter()
            .map(|(index, text)| self.findings(setting, index, &text.ids, &attacks))
            .collect::<Result<Vec<_>>>()?;
        let mut versions = (0..self.lengths.len() + attacks.len())
            .map(|version| Found::new(findings.iter().map(|of_text| &of_text[version])));
        Ok(Row {
            setting,
            perplexity: MeanInterval::new(&surprisals, CONFIDENCE)
                .ok_or_else(|| anyhow::anyhow!("fewer than two texts"))?
                .map(f64::exp),
            repeated_4grams: ngrams(4, |distinct| 1.0 - distinct),
            distinct_2grams: ngrams(2, |distinct| distinct),
            changed_by_round_trip: texts.iter().filter(|text| !text.round_trip).count(),
            by_length: self
                .lengths
                .iter()
                .zip(versions.by_ref())
                .map(|(&tokens, found)| AtLength { tokens, found })
                .collect(),
            attacks: attacks
                .iter()
                .zip(versions)
                .map(|(&(attack, share), found)| AfterAttack {
                    attack: attack.name(),
                    share,
                    found,
                })
                .collect(),
        })
    }

    fn attacks(&self) -> Vec<(Attack<'_>, Share)> {
        let kinds = [Attack::Deletion, Attack::Substitution { pool: &self.pool }, Attack::Crop];
        let of = |kind| self.shares.iter().map(move |&share| (kind, share));
        kinds.into_iter().flat_map(of).collect()
    }

    /// What is found in a text cut to every length, then after every attack.
    fn findings(
        &self,
        setting: Setting,
        index: u32,
        ids: &[TokenId],
        attacks: &[(Attack<'_>, Share)],
    ) -> Result<Vec<Finding>> {
        let key = text_key(self.seed, index);
        let profile = setting.mark(&self.loaded.engine, self.seed, index)?.profile().clone();
        let tokenizer = self.loaded.engine.shared_tokenizer();
        let detector = Detector::new(tokenizer, profile, &key, DetectOptions::default())?;
        let cut = self.lengths.iter().map(|&length| ids[..length.min(ids.len())].to_vec());
        let damaged = (0..).zip(attacks).map(|(attack, (kind, share))| {
            kind.apply(ids, *share, AttackSeed { seed: self.seed, text: index, attack })
        });
        (0..)
            .zip(cut.chain(damaged))
            .map(|(version, ids)| {
                let text = self.loaded.engine.tokenizer().decode_lossy(&ids);
                let report = detector.text(&text, &Circumstances::default())?;
                Ok(Finding::new(&report, edge(self.seed, index, version)))
            })
            .collect()
    }
}

impl Finding {
    /// `edge` is uniform on (0, 1) and decides at the edge of a count's null.
    fn new(report: &Report, edge: f64) -> Self {
        // A report always begins with the test of the whole text as given.
        let whole = &report.tests[0];
        let tails = match whole.evidence {
            _ if whole.scored == 0 => Tails::certain(),
            EvidenceSummary::Count { green, expected_rate } => {
                Tails::binomial(whole.scored, green, expected_rate)
            }
            EvidenceSummary::Sum { .. } => {
                Tails::continuous(LogProbability::from_ln(whole.log10_p * LN_10))
            }
        };
        Self {
            scored: whole.scored,
            rejects: log_rates().map(|alpha| edge < tails.rejection(alpha)),
        }
    }
}

impl Found {
    fn new<'f>(findings: impl Iterator<Item = &'f Finding>) -> Self {
        let findings = findings.collect::<Vec<_>>();
        let texts = findings.len() as u64;
        let scored: u64 = findings.iter().map(|finding| finding.scored).sum();
        let rate = |(index, &(false_positive_rate, _)): (usize, &(f64, &str))| {
            let detected = findings.iter().filter(|finding| finding.rejects[index]).count() as u64;
            let (lower, upper) = clopper_pearson(detected, texts, CONFIDENCE);
            let rate = detected as f64 / texts as f64;
            Detection { false_positive_rate, detected, rate, lower, upper }
        };
        Self {
            mean_scored: scored as f64 / texts as f64,
            rates: RATES.iter().enumerate().map(rate).collect(),
        }
    }
}

/// A uniform number on (0, 1) for one version of one text, the same in every setting.
fn edge(seed: u64, text: u32, version: u64) -> f64 {
    let bits = ChaCha8Stream::new(&draw_seed(EDGE_TAG, seed, text, version)).word(0);
    (f64::from(bits) + 0.5) / 4_294_967_296.0
}
