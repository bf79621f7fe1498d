//! A vocabulary: for every id its string, the bytes it adds to a text, and its kind.

use std::collections::HashMap;
use std::ops::Range;

use crate::token::{TokenId, TokenKind};

/// What an id of a vocabulary is. Finer than [`TokenKind`], because encoding and the fingerprint
/// need the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// No token, or padding of the vocabulary that stands for nothing.
    Unused,
    /// A token that merging makes.
    Normal,
    /// A control token.
    Control,
    /// A single byte of a byte-fallback vocabulary.
    Byte,
    /// Text that was added to the vocabulary later and is found before merging.
    Added,
}

/// Ids from 0 up, with gaps as [`Slot::Unused`].
#[derive(Debug, Default)]
pub(super) struct Vocab {
    slots: Vec<Slot>,
    pieces: String,
    piece_ranges: Vec<Range<usize>>,
    bytes: Vec<u8>,
    byte_ranges: Vec<Range<usize>>,
}

impl Vocab {
    /// Appends the token of the next id.
    pub(super) fn push(&mut self, slot: Slot, piece: &str, bytes: &[u8]) {
        self.slots.push(slot);
        let start = self.pieces.len();
        self.pieces.push_str(piece);
        self.piece_ranges.push(start..self.pieces.len());
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.byte_ranges.push(start..self.bytes.len());
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn slot(&self, id: TokenId) -> Option<Slot> {
        self.slots.get(id as usize).copied()
    }

    pub(super) fn piece(&self, id: TokenId) -> Option<&str> {
        self.piece_ranges.get(id as usize).map(|range| &self.pieces[range.clone()])
    }

    /// The bytes of the id's string, for control tokens too.
    pub(super) fn bytes(&self, id: TokenId) -> Option<&[u8]> {
        self.byte_ranges.get(id as usize).map(|range| &self.bytes[range.clone()])
    }

    pub(super) fn kind(&self, id: TokenId) -> Option<TokenKind> {
        self.slot(id).map(|slot| match slot {
            Slot::Normal | Slot::Added => TokenKind::Normal,
            Slot::Control | Slot::Unused => TokenKind::Control,
            Slot::Byte => TokenKind::Byte,
        })
    }

    /// All used ids with slot, string and bytes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (TokenId, Slot, &str, &[u8])> {
        // Loaders refuse vocabularies above 2^22 ids.
        (0u32..)
            .zip(&self.slots)
            .zip(self.piece_ranges.iter().zip(&self.byte_ranges))
            .filter(|((_, slot), _)| **slot != Slot::Unused)
            .map(|((id, &slot), (piece, bytes))| {
                (id, slot, &self.pieces[piece.clone()], &self.bytes[bytes.clone()])
            })
    }

    /// The strings of one slot kind, with their ids.
    pub(super) fn of(&self, wanted: Slot) -> impl Iterator<Item = (&str, TokenId)> {
        self.iter()
            .filter(move |(_, slot, ..)| *slot == wanted)
            .map(|(id, _, piece, _)| (piece, id))
    }

    /// Ids by string, of tokens that are not unused.
    pub(super) fn by_piece(&self) -> HashMap<&str, TokenId> {
        self.iter().map(|(id, _, piece, _)| (piece, id)).collect()
    }
}
