//! The fingerprint of a tokenizer: what decides which ids a text has, and nothing else.
//!
//! SHA-256 of this byte string, where numbers are u32 little-endian and strings are a length
//! and bytes:
//!
//! 1. the ASCII text `greenmark/tokenizer/1` and a zero byte;
//! 2. strings: model (`bpe`, `unigram`), pre-tokenizer, normaliser, further settings (sorted
//!    JSON, empty for the pre-tokenizers known by name);
//! 3. one byte each: prefix space, ignore merges (0 or 1);
//! 4. the number of used ids; for each in ascending order: id, kind (one byte: 0 normal,
//!    1 control, 2 byte, 3 added text), its bytes as a string;
//! 5. the number of merges; for each in order of rank: left id, right id.
//!
//! Left out on purpose: the size of the vocabulary and unused ids (file forms pad differently),
//! templates, BOS and EOS settings, truncation, padding, and how the encoder works.

use sha2::{Digest, Sha256};

use super::vocab::{Slot, Vocab};
use crate::prf::hex;
use crate::token::TokenId;

/// The settings that enter the fingerprint beside vocabulary and merges.
pub(super) struct Settings<'a> {
    pub(super) model: &'a str,
    pub(super) pre_tokenizer: &'a str,
    pub(super) normalizer: &'a str,
    pub(super) further: &'a str,
    pub(super) prefix_space: bool,
    pub(super) ignore_merges: bool,
}

/// The fingerprint as 64 hexadecimal digits.
pub(super) fn fingerprint(
    settings: &Settings<'_>,
    vocab: &Vocab,
    merges: &[(TokenId, TokenId)],
) -> String {
    let mut hash = Sha256::new();
    hash.update(b"greenmark/tokenizer/1\0");
    // Vocabularies and files are far below 2^32 entries and bytes.
    #[expect(clippy::cast_possible_truncation, reason = "see above")]
    let number = |value: usize| (value as u32).to_le_bytes();
    for text in [settings.model, settings.pre_tokenizer, settings.normalizer, settings.further] {
        hash.update(number(text.len()));
        hash.update(text);
    }
    hash.update([u8::from(settings.prefix_space), u8::from(settings.ignore_merges)]);
    hash.update(number(vocab.iter().count()));
    for (id, slot, _, bytes) in vocab.iter() {
        let kind = match slot {
            Slot::Normal | Slot::Unused => 0u8,
            Slot::Control => 1,
            Slot::Byte => 2,
            Slot::Added => 3,
        };
        hash.update(id.to_le_bytes());
        hash.update([kind]);
        hash.update(number(bytes.len()));
        hash.update(bytes);
    }
    hash.update(number(merges.len()));
    for (left, right) in merges {
        hash.update(left.to_le_bytes());
        hash.update(right.to_le_bytes());
    }
    hex(&hash.finalize())
}
