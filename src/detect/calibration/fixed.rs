//! Table (b): how often the texts of this corpus fire under keys that stay the same.

use serde::Serialize;

use crate::detect::Alpha;
use crate::detect::calibration::block::{self, Block};
use crate::detect::calibration::resample::{Fires, Places, Replicates};
use crate::detect::calibration::{Calibration, Fired};
use crate::prf::KeyFingerprint;
use crate::stats::clopper_pearson;

/// The mass of every interval of this table.
const CONFIDENCE: f64 = 0.95;

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

pub(super) fn rows(calibration: &Calibration, blocks: &[Block]) -> Vec<FixedKeys> {
    let plan = calibration.plan();
    let keys = calibration.fixed.len();
    if keys == 0 {
        return Vec::new();
    }
    let places = Places { lengths: plan.lengths().len(), keys, alphas: plan.alphas().len() };
    let mut fires: Vec<Fires> = vec![Vec::new(); places.lengths];
    let mut counts = vec![0; places.count()];
    for fired in blocks.iter().flat_map(|block| &block.fired) {
        let Fired { passage, key: Some(key), length, levels, .. } = *fired else { continue };
        let (key, length, levels) = (key as usize, usize::from(length), usize::from(levels));
        let document = calibration.corpus().passages()[passage as usize].document as usize;
        fires[length].push((key, document, levels));
        for level in 0..levels {
            counts[places.of(length, level, Some(key))] += 1;
            counts[places.of(length, level, None)] += 1;
        }
    }
    let replicates = Replicates::new(calibration, places, fires);
    let table = Table { calibration, blocks, places, counts, replicates };
    (0..places.lengths).map(|length| table.row(length)).collect()
}

/// What all rows are made from.
struct Table<'a> {
    calibration: &'a Calibration,
    blocks: &'a [Block],
    places: Places,
    /// Pairs that fire, at their places.
    counts: Vec<u64>,
    replicates: Replicates,
}

impl Table<'_> {
    fn row(&self, length: usize) -> FixedKeys {
        let plan = self.calibration.plan();
        let scored = block::scored(self.blocks, length);
        let passages = scored.values().map(|(passages, _)| passages).sum();
        let rate = |(level, alpha): (usize, &Alpha)| {
            let attainable = scored.iter().map(|(&scored, &(passages, _))| {
                self.calibration.levels.attainable(scored, level) * passages as f64
            });
            let attainable = mean(attainable.sum(), passages);
            self.rate((length, level), alpha.value(), attainable, passages)
        };
        FixedKeys {
            tokens: plan.lengths()[length],
            passages,
            keys: self.places.keys as u64,
            rates: plan.alphas().iter().enumerate().map(rate).collect(),
        }
    }

    fn rate(
        &self,
        (length, level): (usize, usize),
        alpha: f64,
        attainable: f64,
        passages: u64,
    ) -> FixedRate {
        let of_key = |(key, &key_fingerprint): (usize, &KeyFingerprint)| {
            let place = self.places.of(length, level, Some(key));
            let count = self.counts[place];
            KeyRate {
                key_fingerprint,
                rate: mean(count as f64, passages),
                count,
                interval: self.interval(place, passages),
            }
        };
        let keys: Vec<KeyRate> =
            self.calibration.fixed_fingerprints.iter().enumerate().map(of_key).collect();
        let place = self.places.of(length, level, None);
        let (count, trials) = (self.counts[place], passages * keys.len() as u64);
        FixedRate {
            alpha,
            attainable,
            rate: mean(count as f64, trials),
            count,
            interval: self.interval(place, trials),
            key_deviation: deviation(&keys),
            independent_deviation: mean(attainable * (1.0 - attainable), passages).sqrt(),
            keys,
        }
    }

    /// The interval of resampled rates, widened to that of independent trials: few fires, or none,
    /// leave a bootstrap nothing to resample.
    fn interval(&self, place: usize, trials: u64) -> (f64, f64) {
        let resampled = self.replicates.interval(place, CONFIDENCE);
        let exact = clopper_pearson(self.counts[place], trials, CONFIDENCE);
        (resampled.0.min(exact.0), resampled.1.max(exact.1))
    }
}

/// `sum` of `count` things, 0 of none.
fn mean(sum: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// Standard deviation between keys.
fn deviation(keys: &[KeyRate]) -> Option<f64> {
    let count = keys.len() as f64;
    let mean = keys.iter().map(|key| key.rate).sum::<f64>() / count;
    let squares: f64 = keys.iter().map(|key| (key.rate - mean).powi(2)).sum();
    (keys.len() > 1).then(|| (squares / (count - 1.0)).sqrt())
}
