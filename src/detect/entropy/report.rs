//! What a report says about uncertainty.

use serde::Serialize;
use serde_json::Value;

use crate::detect::entropy::{
    Detectability, GreenListBias, Levels, Rule, TokenUncertainty, WeightedTest, detectability,
};
use crate::detect::evidence::is_green;
use crate::detect::{Look, Outcome};
use crate::stats::PValue;

/// Where uncertainties come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum EntropySource {
    /// A model that read the text.
    Model(String),
    /// The sidecar that generation left.
    Sidecar(String),
}

/// The uncertainties that a detection is told.
#[derive(Clone, Debug, PartialEq)]
pub struct EntropyInput {
    /// Where they come from.
    pub source: EntropySource,
    /// The sampling parameters of the text, when known; else temperature 1 without truncation was
    /// assumed.
    pub sampling: Option<Value>,
    /// One entry per token of the text as given; `None` where nothing is known of it.
    pub tokens: Vec<Option<TokenUncertainty>>,
}

impl EntropyInput {
    /// Whether weights can be computed for any token.
    pub(crate) fn weighs(&self) -> bool {
        self.tokens.iter().flatten().any(|token| token.chances.is_some())
    }
}

/// Whether the sampling parameters that weights rest on are those of the text.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", content = "parameters", rename_all = "snake_case")]
pub enum SamplingReport {
    /// From a sidecar.
    Known(Value),
    /// Temperature 1, nothing truncated.
    Assumed,
}

/// The test of one rule, with a p of its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntropyTest {
    /// The rule.
    pub rule: Rule,
    /// Whether the test takes part in the verdict; the others are for comparison.
    pub decides: bool,
    /// Tokens with a weight above 0.
    pub scored: u64,
    /// Tokens of weight 0.
    pub low_entropy: u64,
    /// Tokens without a known uncertainty.
    pub unaligned: u64,
    /// Sum of the weights of the green tokens.
    pub statistic: f64,
    /// Its mean under the null.
    pub mean: f64,
    /// Its variance under the null.
    pub variance: f64,
    /// Effect size.
    pub z: Option<f64>,
    /// The status of a missing z.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub z_status: Option<&'static str>,
    /// One-sided p of this test alone, an upper bound.
    pub p_value: PValue,
    /// The status of a missing p.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_status: Option<&'static str>,
    /// Its decimal logarithm.
    pub log10_p: f64,
}

/// What the model's uncertainty says about the text as given.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntropyReport {
    /// Where the uncertainties come from.
    pub source: EntropySource,
    /// Whether temperature and truncation are those of the text.
    pub sampling: SamplingReport,
    /// Scored tokens whose uncertainty is not known.
    pub unaligned: u64,
    /// Mean entropy of the scored tokens, in nats; absent when none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_entropy: Option<f64>,
    /// One test for each rule whose numbers are known.
    pub tests: Vec<EntropyTest>,
    /// What could be found if the text is marked, at the alpha that each deciding test of this
    /// report is left with: the plain count pays for every look and family, the likelihood ratio,
    /// which has one look, for the families; absent when the source does not say enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectability: Option<Detectability>,
    /// The same in words.
    pub sentence: String,
}

/// The report, and the likelihood-ratio test, which takes part in the verdict.
pub(crate) fn examine(
    input: &EntropyInput,
    bias: Option<GreenListBias>,
    look: &Look,
    levels: Levels,
) -> (EntropyReport, Option<WeightedTest>) {
    let (mut green, mut tokens) = (Vec::new(), Vec::new());
    for (index, outcome) in look.evidence.outcomes.iter().enumerate() {
        if let Outcome::Scored(score) = outcome {
            green.push(is_green(*score));
            tokens.push(input.tokens.get(index).copied().flatten());
        }
    }
    let known: Vec<f64> = tokens.iter().flatten().map(|token| token.entropy).collect();
    let tests: Vec<WeightedTest> = bias.map_or_else(Vec::new, |bias| {
        let test = |rule: &Rule| WeightedTest::new(*rule, bias, &green, &tokens);
        Rule::ALL.iter().filter_map(test).collect()
    });
    let detectability = bias.and_then(|bias| detectability(bias, &tokens, levels));
    let sentence = match (bias, &detectability) {
        (None, _) => "this scheme has no green list: entropies are listed, weights and power are \
                      not computed"
            .to_owned(),
        (Some(_), Some(found)) => found.sentence(),
        (Some(_), None) if known.is_empty() => {
            "the uncertainty of no scored token is known".to_owned()
        }
        (Some(_), None) => "only entropies are known: weights and power need a model (--entropy \
                            MODEL) or a sidecar of this version"
            .to_owned(),
    };
    let report = EntropyReport {
        source: input.source.clone(),
        sampling: input.sampling.clone().map_or(SamplingReport::Assumed, SamplingReport::Known),
        unaligned: (tokens.len() - known.len()) as u64,
        mean_entropy: (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64),
        tests: bias.map_or_else(Vec::new, |bias| {
            tests.iter().map(|test| entropy_test(test, bias)).collect()
        }),
        detectability,
        sentence,
    };
    let deciding = tests.into_iter().find(|test| test.rule == Rule::LikelihoodRatio);
    (report, deciding)
}

fn entropy_test(test: &WeightedTest, bias: GreenListBias) -> EntropyTest {
    EntropyTest {
        rule: test.rule,
        decides: test.rule == Rule::LikelihoodRatio,
        scored: test.scored,
        low_entropy: test.low_entropy,
        unaligned: test.unaligned,
        statistic: test.statistic,
        mean: test.total * bias.gamma,
        variance: test.squares * bias.gamma * (1.0 - bias.gamma),
        z: test.z,
        z_status: test.z.is_none().then_some("nothing_scored"),
        p_value: test.p.p_value(),
        p_status: test.p.p_value().status(),
        log10_p: test.p.log10(),
    }
}
