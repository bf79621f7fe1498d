//! One step of a marked text over random green lists.
//!
//! Let x be the token that stands in the text, G the green mass of the other tokens under a random
//! list, c = e^delta - 1, and Z = 1 + cG (plus c p(x) when x is green). Then
//!
//! ```text
//! a = E[e^delta / Z | x green],  b = E[1 / Z | x red],
//! chance that x is green given that the mark drew it = gamma a / (gamma a + (1 - gamma) b).
//! ```
//!
//! Both expectations are one integral, 1/Z being the integral of e^(-tZ) over t > 0 and the lists
//! independent from token to token:
//!
//! ```text
//! E[1 / (k + cG)] = integral of e^(-kt) * product over tokens of (1 - gamma + gamma e^(-t c p)) dt
//! ```
//!
//! With t = e^s the trapezoid rule converges geometrically: at a step of 1/2 its error is below
//! 1e-7 of the value. Tokens of probability 1/128 and above enter exactly; the rest as equal tokens
//! with the same mass and the same sum of squares, so mean and variance of G are exact.

use crate::detect::entropy::{Chances, GreenListBias};

/// Tokens from this probability on enter the product one by one.
const HEAVY_FROM: f64 = 1.0 / 128.0;

/// Step of the trapezoid rule in ln t.
const NODE_STEP: f64 = 0.5;
/// ln t of the last node: e^-t is below 1e-14 there.
const LAST_NODE: f64 = 3.5;
/// The nodes begin at ln t = -(this + delta): what lies before is below 1.2e-7 of e^-delta.
const FIRST_NODE: f64 = 16.0;

/// Many tokens of the same probability.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tail {
    mass: f64,
    squares: f64,
}

impl Tail {
    fn without(self, probability: f64) -> Self {
        Self {
            mass: (self.mass - probability).max(0.0),
            squares: (self.squares - probability * probability).max(0.0),
        }
    }

    /// Probability and number of equal tokens that have this mass and sum of squares.
    fn equal_tokens(self) -> (f64, f64) {
        if self.mass > 0.0 && self.squares > 0.0 {
            (self.squares / self.mass, self.mass * self.mass / self.squares)
        } else {
            (0.0, 0.0)
        }
    }
}

/// The distribution of a sampled step before the mark, reduced to what chances depend on.
#[derive(Clone, Debug)]
pub struct StepDistribution {
    bias: GreenListBias,
    /// Probabilities of single tokens that the mark may touch.
    heavy: Vec<f64>,
    tail: Tail,
    spike_entropy: f64,
}

impl StepDistribution {
    /// Reduces a distribution: the probability of each token, and whether the mark may touch it.
    ///
    /// Probabilities are expected to sum to 1; none is checked.
    #[must_use]
    pub fn new(bias: GreenListBias, probabilities: impl Iterator<Item = (f64, bool)>) -> Self {
        let modulus = bias.spike_modulus();
        let mut heavy = Vec::new();
        let mut tail = Tail::default();
        let mut spike_entropy = 0.0;
        for (probability, markable) in probabilities {
            spike_entropy += probability / (1.0 + modulus * probability);
            if !markable {
                continue;
            }
            if probability >= HEAVY_FROM {
                heavy.push(probability);
            } else {
                tail.mass += probability;
                tail.squares += probability * probability;
            }
        }
        Self { bias, heavy, tail, spike_entropy }
    }

    /// The spike entropy.
    #[must_use]
    pub fn spike_entropy(&self) -> f64 {
        self.spike_entropy
    }

    /// Chance that a marked step shows a green token.
    #[must_use]
    pub fn green_chance(&self) -> f64 {
        let inverse = self.integrate(&self.heavy, self.tail, |product, t| product * (-t).exp());
        self.green_from(inverse)
    }

    /// The chances when the mark drew a token of this probability, one of the distribution's.
    ///
    /// A token of probability 0 was not drawn from this distribution: somebody else put it there,
    /// and it speaks for nothing.
    #[must_use]
    pub fn chances(&self, probability: f64) -> Chances {
        let gamma = self.bias.gamma;
        let gain = self.bias.gain();
        let (mut others, mut tail) = (self.heavy.clone(), self.tail);
        // The same probability may come from another way of rounding.
        let same = |heavy: &f64| (heavy - probability).abs() <= 1e-9 * probability;
        match others.iter().position(same) {
            Some(index) => {
                others.swap_remove(index);
            }
            None => tail = tail.without(probability),
        }
        let [mut green, mut red, mut either] = [0.0; 3];
        self.each_node(&others, tail, |weight, t, product| {
            let red_part = weight * product * (-t).exp();
            let own = (-t * gain * probability).exp();
            red += red_part;
            green += red_part * own;
            either += red_part * (1.0 - gamma + gamma * own);
        });
        green *= gain + 1.0;
        let token_green = if probability > 0.0 {
            gamma * green / (gamma * green + (1.0 - gamma) * red)
        } else {
            gamma
        };
        Chances {
            spike_entropy: self.spike_entropy,
            probability,
            step_green: self.green_from(either),
            token_green,
        }
    }

    /// The chance of green from E[1 / Z] over all tokens: e^delta E[G / Z], where c G / Z is
    /// 1 - 1/Z.
    fn green_from(&self, inverse: f64) -> f64 {
        let gain = self.bias.gain();
        // Without a bias the quotient is 0 / 0; the green share of the markable mass is left.
        if gain < 1e-6 {
            return self.bias.gamma * (self.heavy.iter().sum::<f64>() + self.tail.mass);
        }
        ((gain + 1.0) / gain * (1.0 - inverse)).clamp(0.0, 1.0)
    }

    fn integrate(&self, heavy: &[f64], tail: Tail, value: impl Fn(f64, f64) -> f64) -> f64 {
        let mut sum = 0.0;
        self.each_node(heavy, tail, |weight, t, product| sum += weight * value(product, t));
        sum
    }

    /// Calls `visit` with the weight of each node, its t and the product over the tokens.
    fn each_node(&self, heavy: &[f64], tail: Tail, mut visit: impl FnMut(f64, f64, f64)) {
        let GreenListBias { gamma, .. } = self.bias;
        let gain = self.bias.gain();
        let (each, count) = tail.equal_tokens();
        let factor =
            |scale: f64, probability: f64| 1.0 - gamma + gamma * (-scale * probability).exp();
        let mut s = LAST_NODE;
        while s >= -(FIRST_NODE + self.bias.bounded_delta()) {
            let t = s.exp();
            let scale = t * gain;
            let single: f64 = heavy.iter().map(|&p| factor(scale, p)).product();
            let product =
                if count > 0.0 { single * factor(scale, each).powf(count) } else { single };
            visit(NODE_STEP * t, t, product);
            s -= NODE_STEP;
        }
    }
}

/// The logits of a greedy step before the mark, reduced to what chances depend on.
///
/// Greedy decoding takes the best token after the bias: a token that the mark may touch and that
/// lies within delta of the best wins when it is green and nothing better is. The chances are closed
/// forms over random lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GreedyStep {
    /// Which bias.
    pub bias: GreenListBias,
    /// Tokens the mark may touch whose logit lies less than delta below the best, the best
    /// included.
    pub within_reach: usize,
    /// How many of them are better than the token that stands in the text; `None` when that token
    /// is not within reach, so that greedy decoding did not draw it.
    pub better: Option<usize>,
}

impl GreedyStep {
    /// Chance that a marked step shows a green token: one within reach is green.
    #[must_use]
    pub fn green_chance(&self) -> f64 {
        1.0 - self.all_red(self.within_reach)
    }

    /// Chance that a marked text which shows the token shows it green.
    #[must_use]
    pub fn token_green(&self) -> f64 {
        let gamma = self.bias.gamma;
        match self.better {
            None => gamma,
            // The best token also stands when it is red and so is everything within reach.
            Some(0) => {
                let red = self.all_red(self.within_reach.saturating_sub(1));
                gamma / (gamma + (1.0 - gamma) * red)
            }
            // Another token stands only because it is green.
            Some(_) => 1.0,
        }
    }

    fn all_red(&self, count: usize) -> f64 {
        (1.0 - self.bias.gamma).powf(count as f64)
    }
}
