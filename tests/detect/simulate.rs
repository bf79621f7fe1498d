//! Score sequences with a known truth, from fixed seeds.

use greenmark::detect::{Evidence, Outcome, Skipped};
use greenmark::scheme::Null;
use greenmark::stats::{ln_binomial_upper, ln_gamma_upper};

/// `SplitMix64` (Steele, Lea and Flood 2014): a stream of its own for every seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Inside (0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    pub(crate) fn green(&mut self, rate: f64) -> f64 {
        f64::from(u8::from(self.uniform() < rate))
    }

    /// A score of an unmarked token.
    pub(crate) fn score(&mut self, null: Null) -> f64 {
        match null {
            Null::Bernoulli(rate) => self.green(rate),
            Null::Exponential => -self.uniform().ln(),
        }
    }

    /// A score of a token marked with this strength: its green rate, or its mean.
    pub(crate) fn marked(&mut self, null: Null, strength: f64) -> f64 {
        match null {
            Null::Bernoulli(_) => self.green(strength),
            Null::Exponential => -strength * self.uniform().ln(),
        }
    }
}

/// `length` scores of which `marked` at a random place are marked.
pub(crate) fn planted(
    random: &mut Random,
    null: Null,
    length: usize,
    marked: usize,
    strength: f64,
) -> Vec<f64> {
    let from = random.below(length - marked + 1);
    (0..length)
        .map(|i| {
            if (from..from + marked).contains(&i) {
                random.marked(null, strength)
            } else {
                random.score(null)
            }
        })
        .collect()
}

/// Exact tails of windows by trying all: those of counts are kept, since few differ.
pub(crate) struct Exhaustive {
    null: Null,
    /// ln p of `k` green among `n`, at `n (n + 1) / 2 + k`.
    counts: Vec<f64>,
}

impl Exhaustive {
    pub(crate) fn new(null: Null, longest: u64) -> Self {
        let counts = match null {
            Null::Bernoulli(rate) => (0..=longest)
                .flat_map(|n| (0..=n).map(move |k| ln_binomial_upper(n, k, rate)))
                .collect(),
            Null::Exponential => Vec::new(),
        };
        Self { null, counts }
    }

    /// The smallest ln p of all windows of at least `shortest` scores.
    pub(crate) fn best(&self, scores: &[f64], shortest: usize) -> f64 {
        let mut best = 0.0_f64;
        for start in 0..scores.len() {
            let mut sum = 0.0;
            for (n, score) in (1..).zip(&scores[start..]) {
                sum += score;
                if n >= shortest {
                    best = best.min(match self.null {
                        Null::Bernoulli(_) => self.counts[n * (n + 1) / 2 + sum as usize],
                        Null::Exponential => ln_gamma_upper(n as f64, sum),
                    });
                }
            }
        }
        best
    }
}

/// The evidence of a text all of whose tokens are scored.
pub(crate) fn evidence(scores: &[f64]) -> Evidence {
    let sum = scores.iter().sum();
    Evidence {
        outcomes: scores.iter().map(|&score| Outcome::Scored(score)).collect(),
        scored: scores.len() as u64,
        raw: scores.len() as u64,
        sum,
        raw_sum: sum,
        skipped: Skipped::default(),
    }
}
