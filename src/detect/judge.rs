//! From looks to a report: every test that is made, what it pays, the one that decides, and the
//! verdict. The only place that concludes.

use serde_json::Value;

use crate::detect::entropy::{
    EntropyInput, GreenListBias, WeightedTest, examine, likelihood_ratio_weight,
};
use crate::detect::evidence::is_green;
use crate::detect::report::SCHEMA;
use crate::detect::{
    DetectOptions, Evidence, EvidenceSummary, Look, Outcome, Report, Skipped, Test, TestReport,
    TokenDetail, TokenDetails, Verdict, Warning,
};
use crate::profile::{Gamma, Profile};
use crate::scheme::{Null, Scheme};
use crate::stats::LogProbability;

/// What a report says beside its tests.
#[derive(Clone, Debug)]
pub struct ReportContext<'a> {
    /// The profile under which the scheme was built.
    pub profile: &'a Profile,
    /// SHA-256 of the input as given, in hexadecimal digits.
    pub input_sha256: String,
    /// What was noticed on the way.
    pub warnings: Vec<Warning>,
    /// Sampling parameters from a sidecar.
    pub generation: Option<Value>,
    /// The model's uncertainty at each token of the text as given, when known.
    pub entropy: Option<EntropyInput>,
}

/// One test of a report and what it pays.
///
/// Alpha is shared: the tests of a report are corrected so that, without a mark, the smallest
/// corrected p is at most alpha in at most a share alpha of texts.
#[derive(Clone, Debug)]
struct Candidate<'a> {
    look: &'a Look,
    test: Test,
    report: TestReport,
    /// Green tokens among those that the test counts (counting schemes).
    green: Option<u64>,
    /// The tokens that it does not count.
    skipped: Skipped,
    /// The p after paying for all tests of the report.
    corrected: LogProbability,
    /// The number of tests that [`Candidate::corrected`] pays for.
    hypotheses: u64,
    /// Whether there are enough tokens to conclude anything.
    sufficient: bool,
}

impl Report {
    /// Tests every look, takes the most surprising test, pays for all of them and concludes.
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
        let key_fingerprint = context.profile.key().fingerprint.to_string();
        let bias = GreenListBias::of(context.profile.scheme());
        let weighs = context.entropy.as_ref().is_some_and(|input| bias.is_some() && input.weighs());
        let hypotheses = looks.len() as u64 + u64::from(weighs);
        let mut candidates: Vec<Candidate<'_>> = looks
            .iter()
            .map(|look| whole_text(scheme, look, hypotheses, options, &key_fingerprint))
            .collect();
        let examined = context
            .entropy
            .as_ref()
            .map(|input| examine(input, bias, &looks[0], options.alpha.shared(hypotheses)));
        let (entropy, weighted) = examined.unzip();
        if let (Some(bias), Some(test)) = (bias, weighted.flatten()) {
            let plain = candidates[0].report.clone();
            candidates.push(likelihood_ratio(&test, bias, &looks[0], hypotheses, options, plain));
        }
        let decides = deciding(&candidates);
        let evidence = &decides.look.evidence;
        let green = decides.green;
        Self {
            schema: SCHEMA,
            verdict: conclude(decides, options),
            z: decides.report.z,
            z_status: decides.report.z_status,
            p_value: decides.report.p_value,
            p_status: decides.report.p_status,
            log10_p: decides.report.log10_p,
            corrected_log10_p: decides.corrected.log10(),
            hypotheses: decides.hypotheses,
            alpha: options.alpha.value(),
            tokens: evidence.outcomes.len() as u64,
            scored: decides.report.scored,
            green,
            green_fraction: green
                .filter(|_| decides.report.scored > 0)
                .map(|green| green as f64 / decides.report.scored as f64),
            gamma: context.profile.scheme().gamma().map(Gamma::get),
            skipped: decides.skipped,
            windows: Vec::new(),
            spans: Vec::new(),
            token_details: (options.details == TokenDetails::Include)
                .then(|| token_details(null, &looks[0], context.entropy.as_ref(), bias)),
            entropy,
            key_id: context.profile.key().id.clone(),
            key_fingerprint,
            tokenizer: context.profile.tokenizer().fingerprint.clone(),
            profile: context.profile.clone(),
            input_sha256: context.input_sha256,
            warnings: context.warnings,
            generation: context.generation,
            version: env!("CARGO_PKG_VERSION"),
            tests: candidates.into_iter().map(|candidate| candidate.report).collect(),
        }
    }
}

/// The test of all scored tokens of a look.
fn whole_text<'a>(
    scheme: &dyn Scheme,
    look: &'a Look,
    hypotheses: u64,
    options: &DetectOptions,
    key_fingerprint: &str,
) -> Candidate<'a> {
    let test = Test::new(scheme.null(), &look.evidence);
    let corrected = test.p.corrected(hypotheses);
    let scored = look.evidence.scored;
    let within_reach =
        test.best_attainable.is_none_or(|best| best.corrected(hypotheses) <= options.alpha.log());
    Candidate {
        look,
        test,
        report: test_report(scheme, look, &test, corrected, key_fingerprint),
        green: green_count(scheme.null(), &look.evidence),
        skipped: look.evidence.skipped,
        corrected,
        hypotheses,
        sufficient: scored > 0 && scored >= options.min_scored && within_reach,
    }
}

/// The likelihood-ratio test of the text as given, whose plain test is `plain`.
fn likelihood_ratio<'a>(
    weighted: &WeightedTest,
    bias: GreenListBias,
    look: &'a Look,
    hypotheses: u64,
    options: &DetectOptions,
    plain: TestReport,
) -> Candidate<'a> {
    let corrected = weighted.p.corrected(hypotheses);
    let best = weighted.best_attainable(bias);
    let test = Test {
        statistic: weighted.statistic,
        z: weighted.z,
        p: weighted.p,
        best_attainable: Some(best),
    };
    Candidate {
        look,
        test,
        report: TestReport {
            name: format!("{} (likelihood ratio)", plain.name),
            scored: weighted.scored,
            statistic: test.statistic,
            z: test.z,
            z_status: test.z.is_none().then_some("nothing_scored"),
            p_value: test.p.p_value(),
            p_status: test.p.p_value().status(),
            log10_p: test.p.log10(),
            corrected_log10_p: corrected.log10(),
            evidence: EvidenceSummary::Sum {
                sum: test.statistic,
                mean: weighted.total * bias.gamma,
                variance: weighted.squares * bias.gamma * (1.0 - bias.gamma),
            },
            ..plain
        },
        green: Some(weighted.green),
        skipped: Skipped {
            low_entropy: weighted.low_entropy,
            unaligned: weighted.unaligned,
            ..look.evidence.skipped
        },
        corrected,
        hypotheses,
        sufficient: weighted.scored > 0
            && weighted.scored >= options.min_scored
            && best.corrected(hypotheses) <= options.alpha.log(),
    }
}

/// The candidate with the smallest corrected p among those that can conclude anything, or among
/// all when none can; the first of equals.
fn deciding<'a, 'b>(candidates: &'a [Candidate<'b>]) -> &'a Candidate<'b> {
    let rank = |candidate: &Candidate<'_>| {
        (!candidate.sufficient, candidate.corrected.ln(), candidate.test.p.ln())
    };
    let better = |best: usize, next: usize| {
        if rank(&candidates[next]) < rank(&candidates[best]) { next } else { best }
    };
    &candidates[(1..candidates.len()).fold(0, better)]
}

fn conclude(decides: &Candidate<'_>, options: &DetectOptions) -> Verdict {
    if !decides.sufficient {
        Verdict::Insufficient
    } else if decides.corrected <= options.alpha.log() {
        Verdict::Watermarked
    } else {
        Verdict::NotDetected
    }
}

fn green_count(null: Null, evidence: &Evidence) -> Option<u64> {
    match null {
        Null::Bernoulli(_) => Some(evidence.green()),
        Null::Exponential => None,
    }
}

fn test_report(
    scheme: &dyn Scheme,
    look: &Look,
    test: &Test,
    corrected: LogProbability,
    key_fingerprint: &str,
) -> TestReport {
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
        z_status: test.z.is_none().then_some("nothing_scored"),
        p_value: test.p.p_value(),
        p_status: test.p.p_value().status(),
        log10_p: test.p.log10(),
        corrected_log10_p: corrected.log10(),
        evidence: match (scheme.null(), green_count(scheme.null(), &look.evidence)) {
            (Null::Bernoulli(expected_rate), Some(green)) => {
                EvidenceSummary::Count { green, expected_rate }
            }
            _ => EvidenceSummary::Sum { sum: test.statistic, mean: scored, variance: scored },
        },
    }
}

fn token_details(
    null: Null,
    look: &Look,
    entropy: Option<&EntropyInput>,
    bias: Option<GreenListBias>,
) -> Vec<TokenDetail> {
    look.evidence
        .outcomes
        .iter()
        .zip(&look.ids)
        .enumerate()
        .map(|(index, (outcome, &id))| {
            let piece = look.pieces.get(index);
            let uncertainty = entropy.and_then(|input| *input.tokens.get(index)?);
            let chances = uncertainty.and_then(|uncertainty| uncertainty.chances);
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
                entropy: uncertainty.map(|uncertainty| uncertainty.entropy),
                spike_entropy: chances.map(|chances| chances.spike_entropy),
                probability: chances.map(|chances| chances.probability),
                weight: bias.zip(chances).map(|(bias, c)| likelihood_ratio_weight(bias, &c)),
            }
        })
        .collect()
}
