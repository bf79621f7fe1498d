//! The pigeonhole bootstrap (A. B. Owen, "The pigeonhole bootstrap", Annals of Applied Statistics
//! 1, 2007): documents and keys are drawn with replacement, each as a whole, independently.
//!
//! With many keys and documents its variance is somewhat too large rather than too small; with few
//! keys it is a rough guide.

use rayon::prelude::*;

use crate::detect::calibration::Calibration;
use crate::prf::{ChaCha8Stream, PrfTag, draw_seed};

const RESAMPLING: PrfTag = PrfTag::new("greenmark/calibration-sample/1");
const REPLICATES: u32 = 1000;

/// Fires of one length: (key, document, alphas reached).
pub(super) type Fires = Vec<(usize, usize, usize)>;

/// The places of the rates of all lengths, alphas and keys in one list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) lengths: usize,
    pub(super) keys: usize,
    pub(super) alphas: usize,
}

impl Places {
    /// Number of places.
    pub(super) fn count(self) -> usize {
        self.lengths * self.alphas * (self.keys + 1)
    }

    /// The place of a key, or of all keys together.
    pub(super) fn of(self, length: usize, level: usize, key: Option<usize>) -> usize {
        (length * self.alphas + level) * (self.keys + 1) + key.map_or(0, |key| key + 1)
    }
}

/// The rates of every replicate.
pub(super) struct Replicates(Vec<Vec<f64>>);

impl Replicates {
    pub(super) fn new(calibration: &Calibration, places: Places, mut fires: Vec<Fires>) -> Self {
        // Sums are rounded: their order must not depend on that of the blocks.
        for fires in &mut fires {
            fires.sort_unstable();
        }
        let seed = calibration.plan().seed();
        let passages = passages_of_documents(calibration);
        let documents = calibration.corpus().documents().len();
        let rates = |replicate: u32| {
            let document_weights = weights(seed, replicate, 0, documents);
            let key_weights = weights(seed, replicate, 1, places.keys);
            rates(places, &fires, &passages, &document_weights, &key_weights)
        };
        Self((0..REPLICATES).into_par_iter().map(rates).collect())
    }

    /// The central `confidence` of the replicates at `place`.
    pub(super) fn interval(&self, place: usize, confidence: f64) -> (f64, f64) {
        let mut values: Vec<f64> = self.0.iter().map(|rates| rates[place]).collect();
        values.sort_unstable_by(f64::total_cmp);
        let outside = (1.0 - confidence) / 2.0 * values.len() as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
        let outside = outside.round() as usize;
        (values[outside], values[values.len() - 1 - outside])
    }
}

/// By length and document the number of passages that fill it.
fn passages_of_documents(calibration: &Calibration) -> Vec<Vec<u32>> {
    let corpus = calibration.corpus();
    let of_length = |&length: &u32| {
        let mut filled = vec![0; corpus.documents().len()];
        for passage in corpus.passages() {
            filled[passage.document as usize] += u32::from(passage.ids.len() >= length as usize);
        }
        filled
    };
    calibration.plan().lengths().iter().map(of_length).collect()
}

/// How often each of `count` things is drawn in `count` draws with replacement.
fn weights(seed: u64, replicate: u32, what: u64, count: usize) -> Vec<u32> {
    let random = ChaCha8Stream::new(&draw_seed(RESAMPLING, seed, replicate, what));
    let mut weights = vec![0; count];
    for word in random.words(count) {
        // A count far below 2^32 leaves the places equally likely to a part in 2^32 / count.
        let place = ((u64::from(word) * count as u64) >> 32) as usize;
        weights[place] += 1;
    }
    weights
}

/// The rates when documents and keys count as often as their weights say.
fn rates(
    places: Places,
    fires: &[Fires],
    passages: &[Vec<u32>],
    document_weights: &[u32],
    key_weights: &[u32],
) -> Vec<f64> {
    let mut rates = vec![0.0; places.count()];
    for (length, fires) in fires.iter().enumerate() {
        let weighed = passages[length].iter().zip(document_weights);
        let trials: f64 = weighed.map(|(&n, &weight)| f64::from(n) * f64::from(weight)).sum();
        if trials == 0.0 {
            continue;
        }
        for &(key, document, levels) in fires {
            let share = f64::from(document_weights[document]) / trials;
            let key_share = f64::from(key_weights[key]) / places.keys as f64;
            for level in 0..levels {
                rates[places.of(length, level, Some(key))] += share;
                rates[places.of(length, level, None)] += key_share * share;
            }
        }
    }
    rates
}
