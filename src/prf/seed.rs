//! From a key and a context of token ids to the 256-bit seed of a key stream.

use sha2::{Digest, Sha256};

use crate::prf::Key;
use crate::token::TokenId;

/// A domain separator: ASCII text padded with zero bytes to 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrfTag([u8; 32]);

impl PrfTag {
    /// The tag of `text`; for constants.
    ///
    /// # Panics
    /// For a text above 32 bytes, when the constant is built.
    #[must_use]
    pub const fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        assert!(bytes.len() <= 32, "a tag has at most 32 bytes");
        let mut tag = [0; 32];
        let mut i = 0;
        while i < bytes.len() {
            tag[i] = bytes[i];
            i += 1;
        }
        Self(tag)
    }

    /// The padded bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Tag of the noise of the draw.
pub const DRAW_TAG: PrfTag = PrfTag::new("greenmark/draw/1");

/// Turns contexts into seeds under one key and tag.
///
/// Key and tag fill exactly one SHA-256 block, so its state is kept and each context of up to
/// 12 ids costs one compression.
#[derive(Clone)]
pub struct ContextSeeder {
    prefix: Sha256,
}

// The hash state is as good as the key.
impl std::fmt::Debug for ContextSeeder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContextSeeder").finish_non_exhaustive()
    }
}

impl ContextSeeder {
    /// The seeder of `key` under `tag`.
    #[must_use]
    pub fn new(key: &Key, tag: PrfTag) -> Self {
        let mut prefix = Sha256::new();
        prefix.update(key.expose());
        prefix.update(tag.as_bytes());
        Self { prefix }
    }

    /// The seed of a context, oldest id first:
    /// SHA-256(key || tag || length as u32 LE || each id as u32 LE).
    #[must_use]
    pub fn seed(&self, context: &[TokenId]) -> [u8; 32] {
        let mut hash = self.prefix.clone();
        // A context width is validated to fit one byte, so the conversion cannot cut.
        #[expect(clippy::cast_possible_truncation, reason = "widths are small")]
        hash.update((context.len() as u32).to_le_bytes());
        for id in context {
            hash.update(id.to_le_bytes());
        }
        hash.finalize().into()
    }
}

/// The seed of the draw's noise: SHA-256(tag || request seed u64 LE || sample u32 LE || step u64 LE).
#[must_use]
pub fn draw_seed(tag: PrfTag, seed: u64, sample: u32, step: u64) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(tag.as_bytes());
    hash.update(seed.to_le_bytes());
    hash.update(sample.to_le_bytes());
    hash.update(step.to_le_bytes());
    hash.finalize().into()
}
