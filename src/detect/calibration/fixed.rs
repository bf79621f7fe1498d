//! Table (b): how often the texts of this corpus fire under keys that stay the same.

use rayon::prelude::*;
use serde::Serialize;

use crate::detect::calibration::block::{self, Block};
use crate::detect::calibration::{Calibration, Fired};
use crate::prf::{ChaCha8Stream, KeyFingerprint, PrfTag, draw_seed};
use crate::stats::clopper_pearson;

const RESAMPLING: PrfTag = PrfTag::new("greenmark/calibration-sample/1");
const REPLICATES: u32 = 1000;

/// The mass of every interval of this table.
const CONFIDENCE: f64 = 0.95;
/// Replicates below and above the interval: half of what it leaves out each.
const OUTSIDE: usize = REPLICATES as usize / 40;

/// One length under fixed keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FixedKeys {
    /// Length in tokens.
    pub tokens: u32,
    /// Passages that fill it; each meets every key.
    pub passages: u64,
    /// Number of keys.
    pub keys: u64,
    /// One entry per alpha, the largest first.
    pub rates: Vec<FixedRate>,
}

/// One level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FixedRate {
    /// The level.
    pub alpha: f64,
    /// The exact chance of p <= alpha under a fresh key, averaged over the passages.
    pub attainable: f64,
    /// Share of passages that fire, over all keys.
    pub rate: f64,
    /// Number of (passage, key) pairs that fire.
    pub count: u64,
    /// 95% interval of the rate: documents, and keys when there are several, are resampled as
    /// wholes (the pigeonhole bootstrap of Owen 2007); never narrower than the Clopper-Pearson
    /// interval that independent passages would have.
    pub interval: (f64, f64),
    /// Standard deviation of the rate between keys; `None` for one key.
    pub key_deviation: Option<f64>,
    /// What that would be if passages were independent.
    pub independent_deviation: f64,
    /// Each key.
    pub keys: Vec<KeyRate>,
}

/// One key at one level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyRate {
    /// Which key.
    pub key_fingerprint: KeyFingerprint,
    /// Share of passages that fire.
    pub rate: f64,
    /// Their number.
    pub count: u64,
    /// 95% interval over resampled documents; never narrower than Clopper-Pearson's.
    pub interval: (f64, f64),
}

/// Fires of one length: (key, document, alphas reached).
type Fires = Vec<(usize, usize, usize)>;

pub(super) fn rows(calibration: &Calibration, blocks: &[Block]) -> Vec<FixedKeys> {
    let plan = calibration.plan();
    let keys = calibration.fixed.len();
    if keys == 0 {
        return Vec::new();
    }
    let corpus = calibration.corpus();
    let mut fires: Vec<Fires> = vec![Vec::new(); plan.lengths().len()];
    for fired in blocks.iter().flat_map(|block| &block.fired) {
        let Fired { passage, key: Some(key), length, levels, .. } = *fired else { continue };
        let document = corpus.passages()[passage as usize].document;
        fires[usize::from(length)].push((key as usize, document as usize, usize::from(levels)));
    }
    // Sums of replicates are rounded: their order must not depend on that of the blocks.
    for fires in &mut fires {
        fires.sort_unstable();
    }
    let documents: Vec<Vec<u32>> = plan
        .lengths()
        .iter()
        .map(|&length| {
            let mut filled = vec![0; corpus.documents().len()];
            for passage in corpus.passages() {
                filled[passage.document as usize] +=
                    u32::from(passage.ids.len() >= length as usize);
            }
            filled
        })
        .collect();
    let rates = Rates { lengths: plan.lengths().len(), keys, alphas: plan.alphas().len() };
    let replicates: Vec<Vec<f64>> = (0..REPLICATES)
        .into_par_iter()
        .map(|replicate| {
            let resample =
                |sample: u32, count: usize| resample(plan.seed(), replicate, sample, count);
            let key_weights = resample(1, keys);
            let document_weights = resample(0, corpus.documents().len());
            rates.of(&fires, &documents, &key_weights, &document_weights)
        })
        .collect();
    let interval = |place: usize, count: u64, trials: u64| {
        let mut values: Vec<f64> = replicates.iter().map(|rates| rates[place]).collect();
        values.sort_unstable_by(f64::total_cmp);
        let exact = clopper_pearson(count, trials, CONFIDENCE);
        (values[OUTSIDE].min(exact.0), values[values.len() - 1 - OUTSIDE].max(exact.1))
    };
    let row = |(length, &tokens): (usize, &u32)| {
        let scored = block::scored(blocks, length);
        let passages: u64 = scored.values().map(|(passages, _)| passages).sum();
        let rate = |(level, alpha): (usize, &crate::detect::Alpha)| {
            let attained: f64 = scored
                .iter()
                .map(|(&scored, &(passages, _))| {
                    calibration.levels.attainable(scored, level) * passages as f64
                })
                .sum();
            let attainable = if passages == 0 { 0.0 } else { attained / passages as f64 };
            let counted = |key: Option<usize>| {
                let fired = |fire: &&(usize, usize, usize)| {
                    fire.2 > level && key.is_none_or(|key| key == fire.0)
                };
                fires[length].iter().filter(fired).count() as u64
            };
            let of_keys: Vec<KeyRate> = (0..keys)
                .map(|key| {
                    let place = rates.place(length, level, Some(key));
                    let count = counted(Some(key));
                    KeyRate {
                        key_fingerprint: calibration.fixed_fingerprints[key],
                        rate: share(count, passages),
                        count,
                        interval: interval(place, count, passages),
                    }
                })
                .collect();
            let place = rates.place(length, level, None);
            let count = counted(None);
            let variance = attainable * (1.0 - attainable) / passages.max(1) as f64;
            FixedRate {
                alpha: alpha.value(),
                attainable,
                rate: share(count, passages * keys as u64),
                count,
                interval: interval(place, count, passages * keys as u64),
                key_deviation: deviation(&of_keys),
                independent_deviation: variance.sqrt(),
                keys: of_keys,
            }
        };
        FixedKeys {
            tokens,
            passages,
            keys: keys as u64,
            rates: plan.alphas().iter().enumerate().map(rate).collect(),
        }
    };
    plan.lengths().iter().enumerate().map(row).collect()
}

fn share(count: u64, trials: u64) -> f64 {
    if trials == 0 { 0.0 } else { count as f64 / trials as f64 }
}

/// Standard deviation between keys.
fn deviation(keys: &[KeyRate]) -> Option<f64> {
    let count = keys.len() as f64;
    let mean = keys.iter().map(|key| key.rate).sum::<f64>() / count;
    let squares: f64 = keys.iter().map(|key| (key.rate - mean).powi(2)).sum();
    (keys.len() > 1).then(|| (squares / (count - 1.0)).sqrt())
}

/// How often each of `count` things is drawn in `count` draws with replacement.
fn resample(seed: u64, replicate: u32, sample: u32, count: usize) -> Vec<u32> {
    let step = u64::from(sample);
    let random = ChaCha8Stream::new(&draw_seed(RESAMPLING, seed, replicate, step));
    let mut weights = vec![0; count];
    for word in random.words(count) {
        // Below `count`, which is far below 2^32: the unevenness is below 1e-3 of a draw.
        let place = ((u64::from(word) * count as u64) >> 32) as usize;
        weights[place] += 1;
    }
    weights
}

/// Rates of all lengths, alphas and keys in one list.
#[derive(Clone, Copy)]
struct Rates {
    lengths: usize,
    keys: usize,
    alphas: usize,
}

impl Rates {
    /// The place of a key's rate, or of that of all keys.
    fn place(self, length: usize, level: usize, key: Option<usize>) -> usize {
        (length * self.alphas + level) * (self.keys + 1) + key.map_or(0, |key| key + 1)
    }

    /// The rates when documents and keys count as often as their weights say.
    fn of(
        self,
        fires: &[Fires],
        documents: &[Vec<u32>],
        key_weights: &[u32],
        document_weights: &[u32],
    ) -> Vec<f64> {
        let mut rates = vec![0.0; self.lengths * self.alphas * (self.keys + 1)];
        for (length, fires) in fires.iter().enumerate() {
            let weighed = documents[length].iter().zip(document_weights);
            let passages: f64 = weighed.map(|(&n, &weight)| f64::from(n) * f64::from(weight)).sum();
            if passages == 0.0 {
                continue;
            }
            for &(key, document, levels) in fires {
                let weight = f64::from(document_weights[document]);
                let key_weight = f64::from(key_weights[key]);
                for level in 0..levels {
                    rates[self.place(length, level, Some(key))] += weight / passages;
                    rates[self.place(length, level, None)] +=
                        key_weight * weight / passages / self.keys as f64;
                }
            }
        }
        rates
    }
}
