//! Token ids, the pieces of an encoded text and sets of ids.
//!
//! No tokenizer lives here: this is the vocabulary in which the other modules speak of tokens.

use std::ops::Range;

use crate::error::{Error, Result};

/// A token id. Its range is that of the model's logits, checked where ids enter the library.
pub type TokenId = u32;

/// What kind of token an id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    /// Ordinary text.
    Normal,
    /// A control token such as end-of-sequence: never text, never marked.
    Control,
    /// A single byte of a byte-fallback vocabulary.
    Byte,
}

/// One token of an encoded text and where it stands in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The token's id.
    pub id: TokenId,
    /// Byte range in the original text. Ranges of neighbouring pieces touch; a character that
    /// several tokens share is cut at byte level.
    pub bytes: Range<usize>,
    /// Character (Unicode scalar value) range in the original text: the characters of which at
    /// least one byte belongs to the token.
    pub chars: Range<usize>,
}

/// Character ranges for byte ranges that follow each other from the start of a text.
#[derive(Clone, Debug)]
pub struct CharRanges<'a> {
    text: &'a str,
    /// `seen` characters start before byte `from`.
    from: usize,
    seen: usize,
}

impl<'a> CharRanges<'a> {
    /// Starts at byte 0 of `text`.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self { text, from: 0, seen: 0 }
    }

    /// The characters of which at least one byte lies between the end of the last range and byte
    /// `to`, which is neither before it nor behind the text.
    pub fn advance(&mut self, to: usize) -> Range<usize> {
        // Continuation bytes are 10xxxxxx; every other byte starts a character.
        let starts = |byte: &&u8| **byte & 0xC0 != 0x80;
        let seen_after =
            self.seen + self.text.as_bytes()[self.from..to].iter().filter(starts).count();
        let inside = !self.text.is_char_boundary(self.from);
        let first = if inside { self.seen - 1 } else { self.seen };
        let chars = if self.from == to { self.seen..self.seen } else { first..seen_after };
        (self.from, self.seen) = (to, seen_after);
        chars
    }
}

/// A set of token ids over a vocabulary of fixed size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenSet {
    words: Vec<u64>,
    vocab: usize,
}

impl TokenSet {
    /// The empty set over `vocab` ids.
    #[must_use]
    pub fn empty(vocab: usize) -> Self {
        Self { words: vec![0; vocab.div_ceil(64)], vocab }
    }

    /// The set of `ids` over `vocab` ids.
    ///
    /// # Errors
    /// [`Error::TokenOutOfRange`] for an id at or above `vocab`.
    pub fn from_ids(vocab: usize, ids: impl IntoIterator<Item = TokenId>) -> Result<Self> {
        let mut set = Self::empty(vocab);
        for (position, id) in ids.into_iter().enumerate() {
            if id as usize >= vocab {
                return Err(Error::TokenOutOfRange { position, id: u64::from(id), vocab });
            }
            set.words[id as usize / 64] |= 1 << (id % 64);
        }
        Ok(set)
    }

    /// Whether the set holds `id`; `false` for ids outside the vocabulary.
    #[must_use]
    pub fn contains(&self, id: TokenId) -> bool {
        self.words.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    /// Number of ids in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set holds no id.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Size of the vocabulary the set is over.
    #[must_use]
    pub fn vocab(&self) -> usize {
        self.vocab
    }

    /// The set as bits, the smallest id lowest in the first word.
    pub(crate) fn words32(&self) -> impl Iterator<Item = u32> + '_ {
        #[expect(clippy::cast_possible_truncation, reason = "a word is cut into its halves")]
        self.words.iter().flat_map(|&word| [word as u32, (word >> 32) as u32])
    }

    /// The ids in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    // A set over u32 ids has fewer than 2^32 members, so the index fits.
                    #[expect(clippy::cast_possible_truncation, reason = "ids are u32")]
                    let base = (index * 64) as u32;
                    base + bit
                })
            })
        })
    }
}

/// Checks that every id lies in a vocabulary of `vocab` ids.
///
/// # Errors
/// [`Error::TokenOutOfRange`] naming the first offender.
pub fn check_ids(ids: &[TokenId], vocab: usize) -> Result<()> {
    match ids.iter().position(|&id| id as usize >= vocab) {
        None => Ok(()),
        Some(position) => {
            Err(Error::TokenOutOfRange { position, id: u64::from(ids[position]), vocab })
        }
    }
}
