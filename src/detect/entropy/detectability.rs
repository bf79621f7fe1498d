//! How well a mark could be detected in a text: expected effect size and power, given what was
//! possible at each of its tokens.

use serde::Serialize;

use crate::detect::Alpha;
use crate::detect::entropy::weighted::rounding_slack;
use crate::detect::entropy::{GreenListBias, Rule, TokenUncertainty, carries};
use crate::stats::{Trial, weighted_threshold, weighted_upper};

/// What one test would find in a text if it were marked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Power {
    /// The accepted rate of false accusations that the test is left with.
    pub alpha: f64,
    /// Expected effect size, in standard deviations of the null.
    pub z: f64,
    /// Chance that the test's p is at most [`Power::alpha`].
    pub power: f64,
}

impl Power {
    /// [`Power::power`] in whole percent; never 0% or 100% where it is not.
    #[must_use]
    pub fn in_words(&self) -> String {
        percent(self.power)
    }
}

/// What is left of alpha for each test that may decide, after paying for the others in play.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// For the plain count.
    pub plain: Alpha,
    /// For the likelihood-ratio test.
    pub likelihood_ratio: Alpha,
    /// Fewer scored tokens than this conclude nothing.
    pub min_scored: u64,
}

/// What could be found in a text if it were marked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Detectability {
    /// Scored tokens, those without a known uncertainty included.
    pub scored: u64,
    /// Scored tokens that could carry a mark ([`carries`]).
    pub carrying: u64,
    /// The plain count of green tokens.
    pub plain: Power,
    /// The likelihood-ratio test, which only a detection with measured uncertainties makes.
    pub likelihood_ratio: Power,
}

impl Detectability {
    /// The larger of both powers: a detection that makes both tests at these levels finds a marked
    /// text at least so often.
    #[must_use]
    pub fn best_power(&self) -> f64 {
        self.plain.power.max(self.likelihood_ratio.power)
    }

    /// What a reviewer needs to know before reading anything into a text that was not flagged.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!(
            "{} of {} scored tokens could carry a mark; if the text is marked, the chance to \
             detect it is {}",
            self.carrying,
            self.scored,
            percent(self.best_power())
        )
    }
}

fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.01 {
        "below 1%".to_owned()
    } else if share < 1.0 && share > 0.99 {
        "above 99%".to_owned()
    } else {
        format!("{:.0}%", share * 100.0)
    }
}

/// Computes it for the scored tokens of a text, each test at its own level. A token without a
/// known uncertainty is taken as unmarked. `None` when nothing is known of any token.
#[must_use]
pub fn detectability(
    bias: GreenListBias,
    tokens: &[Option<TokenUncertainty>],
    levels: Levels,
) -> Option<Detectability> {
    let chances: Vec<_> = tokens.iter().map(|token| token.and_then(|t| t.chances)).collect();
    if chances.iter().all(Option::is_none) {
        return None;
    }
    let rates = chances.iter().map(|c| c.map_or(bias.gamma, |c| c.token_green));
    let weights = Rule::LikelihoodRatio.weights(bias, tokens);
    let plain: Vec<_> = rates.clone().map(|rate| (1.0, rate)).collect();
    let ratio: Vec<_> =
        weights.iter().zip(rates).map(|(weight, rate)| (weight.unwrap_or(0.0), rate)).collect();
    let scored = tokens.len() as u64;
    let found = |tokens: &[(f64, f64)], alpha| {
        let found = power(bias.gamma, tokens, alpha);
        // A text that is too short by decree is never flagged, however strong its mark.
        if scored < levels.min_scored { Power { power: 0.0, ..found } } else { found }
    };
    Some(Detectability {
        scored,
        carrying: chances.iter().flatten().filter(|chances| carries(bias, chances)).count() as u64,
        plain: found(&plain, levels.plain),
        likelihood_ratio: found(&ratio, levels.likelihood_ratio),
    })
}

/// The power of the test that adds the weight of each green token, each being green with its rate
/// if the text is marked and with chance `gamma` if not.
#[must_use]
pub fn power(gamma: f64, tokens: &[(f64, f64)], alpha: Alpha) -> Power {
    let trials = |marked: bool| -> Vec<Trial> {
        tokens
            .iter()
            .filter(|(weight, _)| *weight > 0.0)
            .map(|&(weight, rate)| Trial { weight, rate: if marked { rate } else { gamma } })
            .collect()
    };
    let (null, marked) = (trials(false), trials(true));
    let squares: f64 = null.iter().map(|trial| trial.weight * trial.weight).sum();
    let excess: f64 = marked.iter().map(|trial| trial.weight * (trial.rate - gamma)).sum();
    let z = if squares > 0.0 { excess / (squares * gamma * (1.0 - gamma)).sqrt() } else { 0.0 };
    let power = weighted_threshold(&null, alpha.log()).map_or(0.0, |threshold| {
        // The lower bound: no chance is promised that is not there.
        weighted_upper(&marked, threshold - rounding_slack(&null)).lower.ln().exp()
    });
    Power { alpha: alpha.value(), z, power }
}
