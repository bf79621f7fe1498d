//! `nfc`: Unicode normalisation form C (UAX 15), stretch by stretch.
//!
//! A stretch runs from one character that never composes with what stands before it to the next,
//! so that the map back stays as fine as the composition allows.

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::Edit;

/// Every stretch that form C writes in another way.
pub(super) fn edits(text: &str, edit: Edit<'_>) {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return;
    }
    let mut start = 0;
    for (at, character) in text.char_indices().skip(1) {
        if begins_a_stretch(character) {
            compose(text, start, at, edit);
            start = at;
        }
    }
    compose(text, start, text.len(), edit);
}

/// Whether nothing before `character` can compose or change places with it.
fn begins_a_stretch(character: char) -> bool {
    character.is_ascii()
        || (canonical_combining_class(character) == 0
            && is_nfc_quick(std::iter::once(character)) == IsNormalized::Yes)
}

/// Edits `text[start..end]` when form C changes it; what agrees at both ends stays out of the edit.
fn compose(text: &str, start: usize, end: usize, edit: Edit<'_>) {
    let stretch = &text[start..end];
    if is_nfc_quick(stretch.chars()) == IsNormalized::Yes {
        return;
    }
    let composed: String = stretch.nfc().collect();
    if composed == stretch {
        return;
    }
    let equal = |(left, right): &(char, char)| left == right;
    let size = |(character, _): (char, char)| character.len_utf8();
    let head: usize = stretch.chars().zip(composed.chars()).take_while(equal).map(size).sum();
    let (old, new) = (&stretch[head..], &composed[head..]);
    let tail: usize = old.chars().rev().zip(new.chars().rev()).take_while(equal).map(size).sum();
    edit(start + head..end - tail, &new[..new.len() - tail]);
}
