//! Power before there is a text: how many tokens a mark needs, and what so many tokens give.
//!
//! A profile of steps stands for the texts to come: each token's step is taken from it at random,
//! so the count of green tokens in T scored tokens is Binomial(T, r) in marked text, r being the
//! mean chance of green of the profile's steps, and Binomial(T, gamma) without a mark. Texts differ
//! from each other more than that where a profile mixes kinds of text: then it says what the
//! mixture gives on average tokens, not what its poorest text gives.

use crate::detect::Alpha;
use crate::detect::entropy::{Power, TokenUncertainty};
use crate::stats::{critical_count, ln_binomial_upper};

/// No text is longer, for the search.
const MOST_TOKENS: u64 = 10_000_000;

/// The plain count in `tokens` scored tokens that are green with chance `rate` if marked and
/// `gamma` if not: expected z, and the chance that its p is at most `alpha`.
#[must_use]
pub fn plain_power(gamma: f64, rate: f64, tokens: u64, alpha: Alpha) -> Power {
    let n = tokens as f64;
    let z = if tokens == 0 { 0.0 } else { (rate - gamma) * (n / (gamma * (1.0 - gamma))).sqrt() };
    let critical = critical_count(tokens, gamma, alpha.log().ln());
    // A count above the number of tokens has chance 0.
    let power = ln_binomial_upper(tokens, critical, rate).exp();
    Power { alpha: alpha.value(), z, power }
}

/// The smallest number of scored tokens at which the plain count has at least `power`; `None` when
/// ten million do not suffice.
///
/// Power climbs in a saw-tooth, since counts are whole: lengths just above the answer may fall
/// short by the height of a tooth.
#[must_use]
pub fn tokens_needed(gamma: f64, rate: f64, power: f64, alpha: Alpha) -> Option<u64> {
    let enough = |tokens| plain_power(gamma, rate, tokens, alpha).power >= power;
    if rate <= gamma {
        return None;
    }
    let (mut low, mut high) = (0, 1);
    while !enough(high) {
        if high == MOST_TOKENS {
            return None;
        }
        low = high;
        high = (high * 2).min(MOST_TOKENS);
    }
    while low + 1 < high {
        let middle = u64::midpoint(low, high);
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    // Teeth are of the order of 1 / sqrt(T) high, so a smaller length that suffices is at most some
    // sqrt(T) away.
    let teeth = 8 * high.isqrt() + 32;
    (high.saturating_sub(teeth).max(1)..=high).find(|&tokens| enough(tokens))
}

/// Mean chance of green over the steps whose chances are known; `None` without any.
#[must_use]
pub fn mean_green_chance(steps: &[TokenUncertainty]) -> Option<f64> {
    let known: Vec<f64> =
        steps.iter().filter_map(|step| step.chances).map(|chances| chances.step_green).collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}
