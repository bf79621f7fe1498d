//! What the model's uncertainty says about each token's evidence: mathematics only.
//!
//! A green-list mark moves a choice only where there is one. Given the distribution that the model
//! had before a token, this module finds how much that token can say ([`StepDistribution`]), and
//! the four rules that weigh tokens by it ([`Rule`]): an entropy threshold, weights from spike
//! entropy, the step-averaged likelihood ratio, and the likelihood ratio of the very token that
//! stands in the text. A weight never depends on the key, so that without the key the greens are
//! independent coins whatever the weights are: every rule's p is valid even if the distributions
//! are wrong, and wrong distributions only cost power.
//!
//! It knows no model: where distributions come from is the engine's or a sidecar's matter.

mod detectability;
mod plan;
mod report;
mod rules;
mod step;
mod weighted;

pub use detectability::{Detectability, Levels, Power, detectability, power};
pub use plan::{mean_green_chance, plain_power, tokens_needed};
pub use report::{EntropyInput, EntropyReport, EntropySource, EntropyTest, SamplingReport};
pub use rules::{CARRIES_FROM, Rule, SWEET_THRESHOLD, carries};
pub use step::{GreedyStep, StepDistribution};
pub use weighted::WeightedTest;

pub use rules::likelihood_ratio_weight;

pub(super) use report::examine;

use serde::{Deserialize, Serialize};

use crate::profile::SchemeParameters;

/// The two numbers of a green-list mark that weights depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GreenListBias {
    /// Chance that a token is green under the null, above 0 and below 1.
    pub gamma: f64,
    /// Bias of green tokens, in logits, at least 0.
    pub delta: f64,
}

impl GreenListBias {
    /// Beyond this bias e^-delta is lost beside the probabilities, so weights stop growing.
    const LARGEST: f64 = 50.0;

    /// The bias of a scheme; `None` for one that has no green list.
    #[must_use]
    pub fn of(scheme: &SchemeParameters) -> Option<Self> {
        match scheme {
            SchemeParameters::GreenList { gamma, delta } => {
                Some(Self { gamma: gamma.effective(), delta: delta.get() })
            }
            SchemeParameters::Gumbel {} => None,
        }
    }

    /// Delta as the weights are computed with: at most 50.
    fn bounded_delta(self) -> f64 {
        self.delta.min(Self::LARGEST)
    }

    /// e^delta - 1: how much a unit of green mass adds to the normalising sum.
    fn gain(self) -> f64 {
        self.bounded_delta().exp_m1()
    }

    /// The modulus of the spike entropy: (1 - gamma)(e^delta - 1) / (1 + gamma (e^delta - 1))
    /// (Kirchenbauer et al. 2023, theorem 4.2).
    #[must_use]
    pub fn spike_modulus(self) -> f64 {
        (1.0 - self.gamma) * self.gain() / (1.0 + self.gamma * self.gain())
    }

    /// The smallest chance of green that a step of this spike entropy has, in expectation over
    /// random green lists: gamma e^delta / (1 + gamma (e^delta - 1)) times the spike entropy, and
    /// never below gamma (Kirchenbauer et al. 2023, theorem 4.2).
    #[must_use]
    pub fn green_chance_at_least(self, spike_entropy: f64) -> f64 {
        let gain = self.gain();
        let bound = self.gamma * (gain + 1.0) / (1.0 + self.gamma * gain) * spike_entropy;
        bound.clamp(self.gamma, 1.0)
    }

    /// ln of how much likelier green is when its chance is `chance` instead of gamma, against red:
    /// the weight of a likelihood-ratio test, clamped to [0, delta].
    fn weight(self, chance: f64) -> f64 {
        let odds = chance * (1.0 - self.gamma) / ((1.0 - chance) * self.gamma);
        // A chance of 1 has infinite odds, which the bound takes in; NaN is no evidence.
        let weight = odds.ln().min(self.bounded_delta());
        if weight > 0.0 { weight } else { 0.0 }
    }
}

/// The model's uncertainty before one token of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenUncertainty {
    /// Shannon entropy of the distribution before the mark, in nats.
    pub entropy: f64,
    /// What a green-list mark does there; `None` where only the entropy is known, and for schemes
    /// without a green list.
    pub chances: Option<Chances>,
}

/// What a green-list mark does to one token, in expectation over random green lists.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chances {
    /// Sum of p / (1 + z p) over the tokens, z being [`GreenListBias::spike_modulus`].
    pub spike_entropy: f64,
    /// Probability of the token that stands in the text, before the mark.
    pub probability: f64,
    /// Chance that a marked step shows a green token, whichever it is.
    pub step_green: f64,
    /// Chance that a marked text which shows this token shows it green.
    pub token_green: f64,
}
