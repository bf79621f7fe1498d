//! From looks to a report: every test that is made, what it pays, the one that decides, and the
//! verdict. The only place that concludes.

use serde_json::Value;

use crate::detect::entropy::{
    EntropyInput, GreenListBias, Levels, WeightedTest, examine, likelihood_ratio_weight,
};
use crate::detect::evidence::is_green;
use crate::detect::report::SCHEMA;
use crate::detect::windows::{Found, Searched};
use crate::detect::{
    DetectOptions, EvidenceSummary, Look, Outcome, Report, Skipped, Test, TestReport, TokenDetail,
    TokenDetails, Verdict, Warning, WindowSearch,
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

/// A kind of test that may decide. Alpha is shared equally among the profiles, then among the
/// families in play, and within a family among the looks that it tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    /// All scored tokens of a look.
    Whole,
    /// The best window of a look.
    Windows,
    /// The text as given, each token weighed by what the mark could do at it.
    LikelihoodRatio,
}

impl Family {
    /// The families in play.
    fn in_play(options: &DetectOptions, weighs: bool) -> Vec<Self> {
        let windows = (options.windows == WindowSearch::On).then_some(Self::Windows);
        let weighted = weighs.then_some(Self::LikelihoodRatio);
        [Some(Self::Whole), windows, weighted].into_iter().flatten().collect()
    }

    /// What the name of a test says beside the scheme.
    fn label(self) -> Option<&'static str> {
        match self {
            Self::Whole => None,
            Self::Windows => Some("best window"),
            Self::LikelihoodRatio => Some("likelihood ratio"),
        }
    }
}

/// One test of a report and what it pays.
///
/// Alpha is shared: the tests of a report are corrected so that, without a mark, the smallest
/// corrected p is at most alpha in at most a share alpha of texts, also over the reports of all
/// profiles that a text is held against.
#[derive(Clone, Debug)]
struct Candidate<'a> {
    look: &'a Look,
    family: Family,
    test: Test,
    /// Tokens counted.
    scored: u64,
    /// Tokens that would count if repeats did.
    raw: u64,
    /// Green tokens among the counted (counting schemes).
    green: Option<u64>,
    /// The tokens of the look that are not counted.
    skipped: Skipped,
    /// What the statistic is made of.
    evidence: EvidenceSummary,
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
        let families = Family::in_play(options, weighs);
        let profiles = options.profiles.get();
        let sharing = profiles.saturating_mul((looks.len() * families.len()) as u64);
        let mut candidates: Vec<Candidate<'_>> =
            looks.iter().map(|look| whole_text(null, look, sharing, options)).collect();
        let searched: Vec<Searched<'_>> = looks
            .iter()
            .filter(|_| families.contains(&Family::Windows))
            .map(|look| Searched::new(null, look, options.min_scored, sharing))
            .collect();
        let mut windows = Vec::new();
        for (place, searched) in searched.iter().enumerate() {
            if let Some(found) = searched.best() {
                windows.push(searched.region(found));
                // The first candidates are the looks' own tests.
                let sufficient = candidates[place].sufficient;
                candidates.push(best_window(null, searched.look(), found, sufficient));
            }
        }
        // Weights are known for the text as given only: the family has one look.
        let weighted_sharing = profiles.saturating_mul(families.len() as u64);
        let levels = Levels {
            plain: options.alpha.shared(sharing),
            likelihood_ratio: options.alpha.shared(weighted_sharing),
            min_scored: options.min_scored,
        };
        let examined =
            context.entropy.as_ref().map(|input| examine(input, bias, &looks[0], levels));
        let (entropy, weighted) = examined.unzip();
        if let (Some(bias), Some(weighted)) = (bias, weighted.flatten()) {
            let hypotheses = weighted_sharing;
            candidates.push(likelihood_ratio(&weighted, bias, &looks[0], hypotheses, options));
        }
        let decides = deciding(&candidates);
        let spans = searched
            .iter()
            .filter(|searched| std::ptr::eq(searched.look(), decides.look))
            .flat_map(|searched| searched.spans(options.alpha))
            .collect();
        let evidence = &decides.look.evidence;
        let green = decides.green;
        let verdict = conclude(decides, options);
        Self {
            schema: SCHEMA,
            verdict,
            z: decides.test.z,
            z_status: decides.test.z_status(),
            p_value: decides.test.p.p_value(),
            p_status: decides.test.p.p_value().status(),
            log10_p: decides.test.p.log10(),
            corrected_log10_p: decides.corrected.log10(),
            hypotheses: decides.hypotheses,
            alpha: options.alpha.value(),
            tokens: evidence.outcomes.len() as u64,
            scored: decides.scored,
            needed: match verdict {
                Verdict::Insufficient => needed(null, sharing, options),
                Verdict::Watermarked | Verdict::NotDetected => None,
            },
            green,
            green_fraction: green
                .filter(|_| decides.scored > 0)
                .map(|green| green as f64 / decides.scored as f64),
            gamma: context.profile.scheme().gamma().map(Gamma::get),
            skipped: decides.skipped,
            windows,
            spans,
            sentences: None,
            token_details: (options.details == TokenDetails::Include)
                .then(|| token_details(null, &looks[0], context.entropy.as_ref(), bias)),
            entropy,
            key_id: context.profile.key().id.clone(),
            key_fingerprint: key_fingerprint.clone(),
            tokenizer: context.profile.tokenizer().fingerprint.clone(),
            profile: context.profile.clone(),
            input_sha256: context.input_sha256,
            warnings: context.warnings,
            generation: context.generation,
            version: env!("CARGO_PKG_VERSION"),
            tests: candidates
                .iter()
                .map(|candidate| candidate.report(scheme, &key_fingerprint))
                .collect(),
        }
    }
}

/// The test of all scored tokens of a look; `hypotheses` tests share alpha.
fn whole_text<'a>(
    null: Null,
    look: &'a Look,
    hypotheses: u64,
    options: &DetectOptions,
) -> Candidate<'a> {
    let test = Test::new(null, &look.evidence);
    let scored = look.evidence.scored;
    Candidate {
        look,
        family: Family::Whole,
        test,
        scored,
        raw: look.evidence.raw,
        green: null.counts().then_some(test.green()),
        skipped: look.evidence.skipped,
        evidence: evidence_summary(null, &test, scored),
        corrected: test.p.corrected(hypotheses),
        hypotheses,
        sufficient: enough(null, scored, hypotheses, options),
    }
}

/// Whether `scored` tokens can conclude anything when `hypotheses` tests share alpha.
fn enough(null: Null, scored: u64, hypotheses: u64, options: &DetectOptions) -> bool {
    let best = Test::best_attainable(null, scored);
    scored > 0
        && scored >= options.min_scored
        && best.is_none_or(|best| best.corrected(hypotheses) <= options.alpha.log())
}

/// The smallest number of scored tokens that is [`enough`] for a scheme that counts.
fn needed(null: Null, hypotheses: u64, options: &DetectOptions) -> Option<u64> {
    if !null.counts() {
        return None;
    }
    let enough = |scored| enough(null, scored, hypotheses, options);
    // More tokens only make the best tail smaller, so that the answer can be closed in on.
    let (mut low, mut high) = (0, options.min_scored.max(1));
    while !enough(high) {
        low = high;
        high = high.checked_mul(2)?;
    }
    while low + 1 < high {
        let middle = u64::midpoint(low, high);
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// The test of the best window of a look. It can conclude what the look's own test can
/// (`sufficient`): nothing is rarer than all of the look's tokens being green.
fn best_window(null: Null, look: &Look, found: Found, sufficient: bool) -> Candidate<'_> {
    Candidate {
        look,
        family: Family::Windows,
        test: found.test,
        scored: found.scored(),
        raw: found.raw,
        green: null.counts().then_some(found.test.green()),
        skipped: look.evidence.skipped,
        evidence: evidence_summary(null, &found.test, found.scored()),
        corrected: found.corrected,
        hypotheses: found.hypotheses,
        sufficient,
    }
}

/// The likelihood-ratio test of the text as given.
fn likelihood_ratio<'a>(
    weighted: &WeightedTest,
    bias: GreenListBias,
    look: &'a Look,
    hypotheses: u64,
    options: &DetectOptions,
) -> Candidate<'a> {
    let best = weighted.best_attainable(bias);
    Candidate {
        look,
        family: Family::LikelihoodRatio,
        test: Test {
            statistic: weighted.statistic,
            z: weighted.z,
            p: weighted.p,
            best_attainable: Some(best),
        },
        scored: weighted.scored,
        raw: look.evidence.raw,
        green: Some(weighted.green),
        skipped: Skipped {
            low_entropy: weighted.low_entropy,
            unaligned: weighted.unaligned,
            ..look.evidence.skipped
        },
        evidence: EvidenceSummary::Sum {
            sum: weighted.statistic,
            mean: weighted.total * bias.gamma,
            variance: weighted.squares * bias.gamma * (1.0 - bias.gamma),
        },
        corrected: weighted.p.corrected(hypotheses),
        hypotheses,
        sufficient: weighted.scored > 0
            && weighted.scored >= options.min_scored
            && best.corrected(hypotheses) <= options.alpha.log(),
    }
}

fn evidence_summary(null: Null, test: &Test, scored: u64) -> EvidenceSummary {
    match null {
        Null::Bernoulli(expected_rate) => {
            EvidenceSummary::Count { green: test.green(), expected_rate }
        }
        Null::Exponential => EvidenceSummary::Sum {
            sum: test.statistic,
            mean: scored as f64,
            variance: scored as f64,
        },
    }
}

/// The candidate with the smallest corrected p among those that can conclude anything, or among
/// all when none can; of equals that of the plainer family, then the first.
fn deciding<'a, 'b>(candidates: &'a [Candidate<'b>]) -> &'a Candidate<'b> {
    let rank = |candidate: &Candidate<'_>| {
        let p = candidate.test.p.ln();
        (!candidate.sufficient, candidate.corrected.ln(), candidate.family, p)
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

impl Candidate<'_> {
    fn report(&self, scheme: &dyn Scheme, key_fingerprint: &str) -> TestReport {
        let (look, test) = (self.look, &self.test);
        let normalization = look.normalization_name();
        let changed = (!look.normalization.is_empty()).then_some(normalization.as_str());
        let labels: Vec<&str> = changed.into_iter().chain(self.family.label()).collect();
        TestReport {
            name: if labels.is_empty() {
                scheme.name().to_owned()
            } else {
                format!("{} ({})", scheme.name(), labels.join(", "))
            },
            profile: scheme.name(),
            key_fingerprint: key_fingerprint.to_owned(),
            normalization,
            scored: self.scored,
            raw: self.raw,
            statistic: test.statistic,
            z: test.z,
            z_status: test.z_status(),
            p_value: test.p.p_value(),
            p_status: test.p.p_value().status(),
            log10_p: test.p.log10(),
            corrected_log10_p: self.corrected.log10(),
            evidence: self.evidence,
        }
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
