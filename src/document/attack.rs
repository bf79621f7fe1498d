//! What a reader may do to a marked text, as random changes of its token ids.
//!
//! For measurements of robustness. Every change is drawn from a seed and touches an exact number
//! of tokens. It imitates no particular editor: a paraphrase changes words where the meaning
//! allows it, a random substitution anywhere.

use crate::error::{Error, Result};
use crate::prf::{ChaCha8Stream, PrfTag, draw_seed};
use crate::token::TokenId;

const TAG: PrfTag = PrfTag::new("greenmark/attack/1");

/// A share of a text, in [0, 1].
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, serde::Serialize)]
pub struct Share(f64);

impl Share {
    /// Checks the range.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 0 <= value <= 1.
    pub fn new(value: f64) -> Result<Self> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(Error::parameter("share", value, "a number from 0 to 1"))
        }
    }

    /// The value.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }

    /// The whole number nearest to this share of `count`.
    #[must_use]
    pub fn of(self, count: usize) -> usize {
        // Between 0 and count, which a rounded double may pass only above 2^53.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
        let part = (self.0 * count as f64).round() as usize;
        part.min(count)
    }
}

/// A change of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack<'a> {
    /// Tokens at random places are left out.
    Deletion,
    /// Tokens at random places are replaced by others, each drawn from the pool with the
    /// frequency it has there. A token stays when the pool holds no other.
    Substitution {
        /// Where the replacements come from, for example the tokens of other texts.
        pool: &'a [TokenId],
    },
    /// Only one contiguous stretch, at a random place, is kept.
    Crop,
}

/// Which random numbers an attack draws: equal values give equal changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttackSeed {
    /// Of the measurement.
    pub seed: u64,
    /// Which text.
    pub text: u32,
    /// Which attack on it.
    pub attack: u64,
}

impl Attack<'_> {
    /// The name in tables.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Deletion => "deletion",
            Self::Substitution { .. } => "substitution",
            Self::Crop => "crop",
        }
    }

    /// `ids` after the attack: `share` of them left out or replaced.
    #[must_use]
    pub fn apply(&self, ids: &[TokenId], share: Share, seed: AttackSeed) -> Vec<TokenId> {
        let mut noise = Noise::new(seed);
        let touched = share.of(ids.len());
        match *self {
            Self::Deletion => {
                let chosen = noise.choose(ids.len(), touched);
                let kept = ids.iter().zip(chosen).filter(|&(_, chosen)| !chosen);
                kept.map(|(&id, _)| id).collect()
            }
            Self::Substitution { pool } => {
                let chosen = noise.choose(ids.len(), touched);
                let replaced = ids.iter().zip(chosen);
                replaced
                    .map(|(&id, chosen)| if chosen { noise.other(id, pool) } else { id })
                    .collect()
            }
            Self::Crop => {
                let start = noise.below(touched + 1);
                ids[start..start + ids.len() - touched].to_vec()
            }
        }
    }
}

/// Random numbers in the order in which they are asked for.
struct Noise {
    stream: ChaCha8Stream,
    next: u64,
}

impl Noise {
    fn new(seed: AttackSeed) -> Self {
        let seed = draw_seed(TAG, seed.seed, seed.text, seed.attack);
        Self { stream: ChaCha8Stream::new(&seed), next: 0 }
    }

    /// A whole number from 0 to `bound` - 1, uniform to within bound / 2^64; `bound` is not 0.
    fn below(&mut self, bound: usize) -> usize {
        let bits = self.stream.word_pair(self.next);
        self.next += 1;
        // Below bound, which is a usize.
        #[expect(clippy::cast_possible_truncation, reason = "see above")]
        let number = ((u128::from(bits) * bound as u128) >> 64) as usize;
        number
    }

    /// Marks `chosen` of `count` places, every set of places alike (Fisher and Yates).
    fn choose(&mut self, count: usize, chosen: usize) -> Vec<bool> {
        let mut places: Vec<usize> = (0..count).collect();
        let mut marks = vec![false; count];
        for drawn in 0..chosen {
            let other = drawn + self.below(count - drawn);
            places.swap(drawn, other);
            marks[places[drawn]] = true;
        }
        marks
    }

    /// A member of the pool that is not `id`; `id` when there is none.
    fn other(&mut self, id: TokenId, pool: &[TokenId]) -> TokenId {
        if pool.iter().all(|&member| member == id) {
            return id;
        }
        loop {
            let member = pool[self.below(pool.len())];
            if member != id {
                return member;
            }
        }
    }
}
