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
//! 1e-7 of the value. Tokens of probability 1/128 and above enter one by one, and all when they are
//! at most 128; otherwise the lighter ones between two powers of two enter as equal tokens, as many
//! and with the same mass.

use crate::detect::entropy::{Chances, GreenListBias};

/// Tokens from this probability on enter the product one by one.
const HEAVY_FROM: f64 = 1.0 / 128.0;
/// So many tokens, if they are all, enter one by one whatever their probability.
const FEW: usize = 128;

/// Step of the trapezoid rule in ln t.
const NODE_STEP: f64 = 0.5;
/// ln t of the last node: e^-t is below 1e-14 there.
const LAST_NODE: f64 = 3.5;
/// The nodes begin at ln t = -(this + delta): what lies before is below 1.2e-7 of e^-delta.
const FIRST_NODE: f64 = 16.0;

/// Lighter tokens that lie between two powers of two, taken as equal ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Equals {
    count: f64,
    mass: f64,
}

/// Bins by binary exponent: from 2^-8 down to 2^-71, where everything lighter ends.
const BINS: usize = 64;

/// The tokens below [`HEAVY_FROM`].
#[derive(Clone, Debug, PartialEq)]
struct Light([Equals; BINS]);

impl Light {
    fn bin(&mut self, probability: f64) -> &mut Equals {
        // The biased exponent of 2^-8 is 1015.
        let exponent = usize::try_from(probability.to_bits() >> 52).unwrap_or(0);
        &mut self.0[1015_usize.saturating_sub(exponent).min(BINS - 1)]
    }

    fn add(&mut self, probability: f64) {
        let bin = self.bin(probability);
        bin.count += 1.0;
        bin.mass += probability;
    }

    fn remove(&mut self, probability: f64) {
        let bin = self.bin(probability);
        bin.count -= 1.0;
        bin.mass -= probability;
        if bin.count < 0.5 || bin.mass <= 0.0 {
            *bin = Equals::default();
        }
    }
}

/// The distribution of a sampled step before the mark, reduced to what chances depend on.
#[derive(Clone, Debug)]
pub struct StepDistribution {
    bias: GreenListBias,
    /// Probabilities of single tokens that the mark may touch.
    heavy: Vec<f64>,
    light: Light,
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
        let mut light = Light([Equals::default(); BINS]);
        let mut spike_entropy = 0.0;
        let mut few = Some(Vec::new());
        for (probability, markable) in probabilities {
            spike_entropy += probability / (1.0 + modulus * probability);
            if !markable || probability <= 0.0 {
                continue;
            }
            if probability >= HEAVY_FROM {
                heavy.push(probability);
            } else {
                light.add(probability);
                few = few.filter(|few: &Vec<f64>| heavy.len() + few.len() < FEW);
                if let Some(few) = &mut few {
                    few.push(probability);
                }
            }
        }
        if let Some(few) = few {
            heavy.extend(few);
            light = Light([Equals::default(); BINS]);
        }
        Self { bias, heavy, light, spike_entropy }
    }

    /// The spike entropy.
    #[must_use]
    pub fn spike_entropy(&self) -> f64 {
        self.spike_entropy
    }

    /// Chance that a marked step shows a green token.
    #[must_use]
    pub fn green_chance(&self) -> f64 {
        let mut complement = 0.0;
        self.each_node(&self.heavy, &self.light, |weight, t, product| {
            complement += weight * (1.0 - product) * (-t).exp();
        });
        self.green_from(complement)
    }

    /// The chances when the mark drew a token of this probability, one of the distribution's.
    ///
    /// A token of probability 0 was not drawn from this distribution: somebody else put it there,
    /// and it speaks for nothing.
    #[must_use]
    pub fn chances(&self, probability: f64) -> Chances {
        let gamma = self.bias.gamma;
        let gain = self.bias.gain();
        let (mut others, mut light) = (self.heavy.clone(), self.light.clone());
        // The same probability may come from another way of rounding.
        let same = |heavy: &f64| (heavy - probability).abs() <= 1e-9 * probability;
        match others.iter().position(same) {
            Some(index) => {
                others.swap_remove(index);
            }
            None => light.remove(probability),
        }
        let [mut green, mut red, mut complement] = [0.0; 3];
        self.each_node(&others, &light, |weight, t, product| {
            let weight = weight * (-t).exp();
            let own = (-t * gain * probability).exp();
            red += weight * product;
            green += weight * product * own;
            complement += weight * (1.0 - product * (1.0 - gamma + gamma * own));
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
            step_green: self.green_from(complement),
            token_green,
        }
    }

    /// The chance of green from 1 - E[1 / Z] over all tokens, which is c E[G / Z]: the chance is
    /// e^delta E[G / Z].
    fn green_from(&self, complement: f64) -> f64 {
        let gain = self.bias.gain();
        // Without a bias the quotient is 0 / 0; the green share of the markable mass is left.
        if gain < 1e-6 {
            let light: f64 = self.light.0.iter().map(|bin| bin.mass).sum();
            return self.bias.gamma * (self.heavy.iter().sum::<f64>() + light);
        }
        ((gain + 1.0) / gain * complement).clamp(0.0, 1.0)
    }

    /// Calls `visit` with the weight of each node, its t and the product over the tokens.
    fn each_node(&self, heavy: &[f64], light: &Light, mut visit: impl FnMut(f64, f64, f64)) {
        let GreenListBias { gamma, .. } = self.bias;
        let gain = self.bias.gain();
        let factor =
            |scale: f64, probability: f64| 1.0 - gamma + gamma * (-scale * probability).exp();
        let light: Vec<&Equals> = light.0.iter().filter(|bin| bin.count > 0.0).collect();
        let mut s = LAST_NODE;
        while s >= -(FIRST_NODE + self.bias.bounded_delta()) {
            let t = s.exp();
            let scale = t * gain;
            let single: f64 = heavy.iter().map(|&p| factor(scale, p)).product();
            let equal: f64 = light
                .iter()
                .map(|bin| factor(scale, bin.mass / bin.count).powf(bin.count))
                .product();
            visit(NODE_STEP * t, t, single * equal);
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
