//! Table (a): is the p of the test what it says?

use serde::Serialize;

use crate::detect::calibration::block::{self, Block};
use crate::detect::calibration::levels::Levels;
use crate::detect::calibration::plan::Plan;
use crate::prf::{ChaCha8Stream, PrfTag, draw_seed};
use crate::stats::{binomial_interval, clopper_pearson, kolmogorov_smirnov};

const RANDOMISED: PrfTag = PrfTag::new("greenmark/calibration-random/1");

/// The mass of every interval of this table.
const CONFIDENCE: f64 = 0.999;

/// One length under fresh keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Validity {
    /// Length in tokens.
    pub tokens: u32,
    /// Pairs of a passage that fills the length and a fresh key.
    pub pairs: u64,
    /// Mean number of scored tokens.
    pub mean_scored: f64,
    /// One entry per alpha, the largest first.
    pub rates: Vec<ValidityRate>,
    /// Kolmogorov-Smirnov distance of the randomised p from uniform.
    pub ks_statistic: f64,
    /// Its p-value.
    pub ks_p_value: f64,
}

/// One level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValidityRate {
    /// The level.
    pub alpha: f64,
    /// The exact chance of p <= alpha, averaged over the pairs.
    pub attainable: f64,
    /// The measured share of pairs with p <= alpha.
    pub measured: f64,
    /// Number of those pairs.
    pub count: u64,
    /// Clopper-Pearson interval of the rate, 99.9%.
    pub interval: (f64, f64),
    /// The central 99.9% of the count at the attainable rate.
    ///
    /// Pairs differ in their chance; the binomial of the mean chance is wider than their sum
    /// (Hoeffding 1956), so a count outside is at least as remarkable as stated.
    pub expected_count: (u64, u64),
    /// Whether the count is inside.
    pub within: bool,
}

pub(super) fn rows(plan: &Plan, levels: &Levels, blocks: &[Block]) -> Vec<Validity> {
    plan.lengths()
        .iter()
        .enumerate()
        .map(|(length, &tokens)| row(plan, levels, blocks, length, tokens))
        .collect()
}

fn row(plan: &Plan, levels: &Levels, blocks: &[Block], length: usize, tokens: u32) -> Validity {
    let scored = block::scored(blocks, length);
    let cells = block::cells(blocks, length);
    let pairs: u64 = scored.values().map(|(_, pairs)| pairs).sum();
    let mean = |value: &dyn Fn(u32) -> f64| {
        let sum: f64 =
            scored.iter().map(|(&scored, &(_, pairs))| value(scored) * pairs as f64).sum();
        if pairs == 0 { 0.0 } else { sum / pairs as f64 }
    };
    let mut reached = vec![0; plan.alphas().len()];
    for (&cell, &count) in &cells {
        for level in &mut reached[..usize::from(levels.reached_in(cell))] {
            *level += count;
        }
    }
    let rates = plan
        .alphas()
        .iter()
        .zip(&reached)
        .enumerate()
        .map(|(level, (alpha, &count))| {
            let attainable = mean(&|scored| levels.attainable(scored, level));
            let expected_count = binomial_interval(pairs, attainable, CONFIDENCE);
            ValidityRate {
                alpha: alpha.value(),
                attainable,
                measured: if pairs == 0 { 0.0 } else { count as f64 / pairs as f64 },
                count,
                interval: clopper_pearson(count, pairs, CONFIDENCE),
                expected_count,
                within: (expected_count.0..=expected_count.1).contains(&count),
            }
        })
        .collect();
    let mut samples = Vec::new();
    for (&cell, &count) in &cells {
        let (low, high) = levels.spread(cell);
        let step = u64::from(cell.0) << 32 | u64::from(cell.1);
        // A plan has at most 16 lengths.
        let place = u32::try_from(length).unwrap_or(u32::MAX);
        let mut random = ChaCha8Stream::new(&draw_seed(RANDOMISED, plan.seed(), place, step));
        samples.extend((0..count).map(|index| {
            let uniform = (random.word_pair(index) as f64 + 0.5) / 2f64.powi(64);
            low + uniform * (high - low)
        }));
    }
    let ks = kolmogorov_smirnov(&mut samples);
    Validity {
        tokens,
        pairs,
        mean_scored: mean(&f64::from),
        rates,
        ks_statistic: ks.statistic,
        ks_p_value: ks.p_value,
    }
}
