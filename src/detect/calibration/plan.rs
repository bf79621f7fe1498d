//! What a calibration does: how many pairs, at which lengths and alphas.

use sha2::{Digest, Sha256};

use crate::detect::Alpha;
use crate::detect::calibration::Corpus;
use crate::error::{Error, Result};
use crate::prf::{Key, hex};
use crate::profile::Profile;

/// A validated plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pairs: u64,
    seed: u64,
    lengths: Vec<u32>,
    alphas: Vec<Alpha>,
}

impl Plan {
    /// The most pairs of a passage and a fresh key.
    pub const MOST_PAIRS: u64 = 1_000_000_000;
    /// The longest passage in tokens.
    pub const LONGEST: u32 = 10_000;

    /// `pairs` of a passage and a fresh key under `seed`; the first tokens of each passage are
    /// tested at each of `lengths` (in tokens) that it fills, at each of `alphas`. Lists are
    /// sorted and repeats dropped.
    ///
    /// # Errors
    /// [`Error::Parameter`] for empty or too long lists and numbers out of range.
    pub fn new(
        pairs: u64,
        seed: u64,
        mut lengths: Vec<u32>,
        mut alphas: Vec<Alpha>,
    ) -> Result<Self> {
        if pairs > Self::MOST_PAIRS {
            return Err(Error::parameter("pairs", pairs, format!("0 to {}", Self::MOST_PAIRS)));
        }
        lengths.sort_unstable();
        lengths.dedup();
        let allowed = format!("1 to 16 numbers from 1 to {}", Self::LONGEST);
        if lengths.is_empty() || lengths.len() > 16 {
            return Err(Error::parameter("lengths", format!("{} numbers", lengths.len()), allowed));
        }
        if let Some(wrong) = lengths.iter().find(|length| !(1..=Self::LONGEST).contains(*length)) {
            return Err(Error::parameter("lengths", wrong, allowed));
        }
        alphas.sort_by(|a, b| b.value().total_cmp(&a.value()));
        alphas.dedup();
        if alphas.is_empty() || alphas.len() > 16 {
            let found = format!("{} numbers", alphas.len());
            return Err(Error::parameter("alphas", found, "1 to 16 numbers"));
        }
        Ok(Self { pairs, seed, lengths, alphas })
    }

    /// Pairs of a passage and a fresh key.
    #[must_use]
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// Decides all keys and all resampling.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Tested lengths in tokens, ascending.
    #[must_use]
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// Tested levels, the largest first.
    #[must_use]
    pub fn alphas(&self) -> &[Alpha] {
        &self.alphas
    }

    /// The largest length.
    #[must_use]
    pub fn longest(&self) -> u32 {
        self.lengths.last().copied().unwrap_or(0)
    }

    /// Stands for the plan and what it is applied to.
    pub(super) fn fingerprint(&self, corpus: &Corpus, profile: &Profile, keys: &[Key]) -> String {
        let mut hash = Sha256::new();
        hash.update(b"greenmark/calibration/1\0");
        // Debug of these values is their content and holds no secret.
        let described = format!(
            "{} {} {:?} {:?} {:?} {:?} {:?} {keys:?}",
            self.pairs,
            self.seed,
            self.lengths,
            self.alphas,
            profile.scheme(),
            profile.context(),
            profile.tokenizer(),
        );
        hash.update(described.as_bytes());
        hash.update(corpus.digest());
        hex(&hash.finalize())
    }
}
