//! The rules that weigh tokens, each from its paper.
//!
//! | rule | weight of a token | source |
//! | --- | --- | --- |
//! | `sweet` | 1 where the entropy is above 0.9 nats, else 0 | Lee et al. 2024, arXiv:2305.15060 |
//! | `ewd` | spike entropy minus the text's smallest | Lu et al. 2024, arXiv:2403.13485 |
//! | `step_average` | ln of the odds ratio of green, averaged over the step's tokens | here |
//! | `likelihood_ratio` | ln(a / b) of the token in the text ([`super::StepDistribution`]) | here |
//!
//! The last is the most powerful of all tests with fixed weights when the distributions are right
//! (Neyman and Pearson): the log-likelihood ratio of a text is the sum of ln(a / b) over its green
//! tokens and of terms that do not depend on the key.

use serde::Serialize;

use crate::detect::entropy::{Chances, GreenListBias, TokenUncertainty};

/// Tokens above this entropy, in nats, count under SWEET's rule: the value of the published
/// configuration for gamma 0.5 and delta 2.
pub const SWEET_THRESHOLD: f64 = 0.9;

/// A token could carry a mark when its likelihood-ratio weight is at least this share of delta: at
/// gamma 0.5 and delta 2, when the mark makes it green in at least 55% of texts instead of 50%.
pub const CARRIES_FROM: f64 = 0.1;

/// Whether a token could carry a mark.
#[must_use]
pub fn carries(bias: GreenListBias, chances: &Chances) -> bool {
    let least = CARRIES_FROM * bias.bounded_delta();
    least > 0.0 && likelihood_ratio_weight(bias, chances) >= least
}

/// The weight of a token in the likelihood-ratio test: ln(a / b), from 0 to delta.
#[must_use]
pub fn likelihood_ratio_weight(bias: GreenListBias, chances: &Chances) -> f64 {
    bias.weight(chances.token_green)
}

/// How tokens are weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Tokens above an entropy threshold.
    Sweet,
    /// Weights from spike entropy.
    Ewd,
    /// The likelihood ratio averaged over the tokens of a step.
    StepAverage,
    /// The likelihood ratio of the token in the text.
    LikelihoodRatio,
}

impl Rule {
    /// Every rule, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Sweet, Self::Ewd, Self::StepAverage, Self::LikelihoodRatio];

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sweet => "sweet",
            Self::Ewd => "ewd",
            Self::StepAverage => "step_average",
            Self::LikelihoodRatio => "likelihood_ratio",
        }
    }

    /// The weight of each token, at least 0; `None` where what the rule needs is not known.
    pub(super) fn weights(
        self,
        bias: GreenListBias,
        tokens: &[Option<TokenUncertainty>],
    ) -> Vec<Option<f64>> {
        let chances = || tokens.iter().map(|token| token.and_then(|token| token.chances));
        match self {
            Self::Sweet => tokens
                .iter()
                .map(|token| token.map(|t| f64::from(u8::from(t.entropy > SWEET_THRESHOLD))))
                .collect(),
            Self::Ewd => {
                let smallest = chances()
                    .flatten()
                    .map(|chances| chances.spike_entropy)
                    .fold(f64::INFINITY, f64::min);
                chances().map(|c| c.map(|c| c.spike_entropy - smallest)).collect()
            }
            Self::StepAverage => chances().map(|c| c.map(|c| bias.weight(c.step_green))).collect(),
            Self::LikelihoodRatio => {
                chances().map(|c| c.map(|c| likelihood_ratio_weight(bias, &c))).collect()
            }
        }
    }
}
