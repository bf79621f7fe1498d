//! The two ways from text to ids: our own byte-level BPE, and the reference crate for the rest.

use std::path::Path;

use tokenizers::NormalizedString;
use tokenizers::tokenizer::normalizer::Range as NormalizedRange;

use super::bpe::{Bpe, Scratch, Sized};
use super::classes::Classes;
use super::split::PreTokenizer;
use super::vocab::Vocab;
use crate::error::{Error, Result};
use crate::token::TokenId;

/// A normaliser that our own encoder knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnicodeForm {
    None,
    /// Unicode canonical composition.
    Nfc,
}

/// Byte-level BPE with a pre-tokenizer known by name.
#[derive(Debug)]
pub(super) struct ByteLevel {
    pub(super) bpe: Bpe,
    pub(super) pre: PreTokenizer,
    pub(super) classes: Classes,
    pub(super) normalizer: UnicodeForm,
    /// Whether a space is put before a text that does not start with one.
    pub(super) prefix_space: bool,
}

/// Any other tokenizer.json, through the reference crate without its added tokens, templates,
/// truncation and padding.
pub(super) struct Reference {
    pub(super) tokenizer: tokenizers::Tokenizer,
}

#[derive(Debug)]
pub(super) enum Encoder {
    ByteLevel(Box<ByteLevel>),
    Reference(Box<Reference>),
}

impl std::fmt::Debug for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reference").finish_non_exhaustive()
    }
}

impl Encoder {
    /// Appends the tokens of a text without literals; the lengths add up to the text's.
    pub(super) fn encode<'t>(
        &self,
        text: &'t str,
        vocab: &Vocab,
        origin: &Path,
        scratch: &mut Scratch<'t>,
        out: &mut Vec<Sized>,
    ) -> Result<()> {
        match self {
            Self::ByteLevel(encoder) => {
                encoder.encode(text, scratch, out);
                Ok(())
            }
            Self::Reference(encoder) => encoder.encode(text, vocab, origin, scratch, out),
        }
    }
}

impl ByteLevel {
    fn encode<'t>(&self, text: &'t str, scratch: &mut Scratch<'t>, out: &mut Vec<Sized>) {
        let composed = match self.normalizer {
            UnicodeForm::None => None,
            // Below U+0300 every text is its own composition.
            UnicodeForm::Nfc if text.chars().all(|c| c < '\u{300}') => None,
            UnicodeForm::Nfc => {
                let mut normalized = NormalizedString::from(text);
                normalized.nfc();
                (normalized.get() != text).then_some(normalized)
            }
        };
        let prefix = self.prefix_space
            && !composed.as_ref().map_or(text, NormalizedString::get).starts_with(' ');
        if composed.is_none() && !prefix {
            self.pre.split(&self.classes, text, |word| {
                self.bpe.word(word.as_bytes(), scratch, out);
            });
            return;
        }

        // The encoded text is another than the given one: encode it apart, then move the cuts.
        let mut changed = composed.as_ref().map_or(text, NormalizedString::get).to_owned();
        if prefix {
            changed.insert(0, ' ');
        }
        let mut tokens = Vec::new();
        // The scratch of the outer text cannot borrow from this one.
        let mut inner = Scratch::default();
        self.pre.split(&self.classes, &changed, |word| {
            self.bpe.word(word.as_bytes(), &mut inner, &mut tokens);
        });
        if tokens.is_empty() {
            // Texts are below 2^32 bytes.
            #[expect(clippy::cast_possible_truncation, reason = "see above")]
            scratch.drop_bytes(out, text.len() as u32);
        }
        let shift = usize::from(prefix);
        let (mut at, mut from) = (0, 0);
        let count = tokens.len();
        for (index, (id, length)) in tokens.into_iter().enumerate() {
            at += length as usize;
            let to = if index + 1 == count {
                text.len()
            } else {
                let cut = at.saturating_sub(shift);
                composed.as_ref().map_or(cut, |c| original_cut(c, cut)).clamp(from, text.len())
            };
            // Texts are below 2^32 bytes.
            #[expect(clippy::cast_possible_truncation, reason = "see above")]
            scratch.push(out, (id, (to - from) as u32));
            from = to;
        }
    }
}

/// The place in the original text of a cut in the normalised one. Inside a character that the
/// normaliser changed, the cut falls after as many bytes as in the normalised character.
fn original_cut(normalized: &NormalizedString, cut: usize) -> usize {
    let text = normalized.get();
    let start = text.floor_char_boundary(cut);
    let Some(character) = text[start..].chars().next() else {
        return normalized.get_original().len();
    };
    let range = start..start + character.len_utf8();
    let original = normalized.convert_offsets(NormalizedRange::Normalized(range));
    original.map_or(cut, |range| (range.start + cut - start).min(range.end))
}

impl Reference {
    fn encode<'t>(
        &self,
        text: &'t str,
        vocab: &Vocab,
        origin: &Path,
        scratch: &mut Scratch<'t>,
        out: &mut Vec<Sized>,
    ) -> Result<()> {
        let encoding = contained(|| self.tokenizer.encode(text, false)).map_err(|e| {
            Error::backend(format!("encoding with the tokenizer {}", origin.display()), e)
        })?;
        let ids = encoding.get_ids();
        let cuts =
            cuts_by_bytes(ids, text, vocab).unwrap_or_else(|| cuts_by_offsets(&encoding, text));
        for (&id, range) in ids.iter().zip(cuts.windows(2)) {
            // Texts are below 2^32 bytes.
            #[expect(clippy::cast_possible_truncation, reason = "see above")]
            scratch.push(out, (id, (range[1] - range[0]) as u32));
        }
        if ids.is_empty() {
            #[expect(clippy::cast_possible_truncation, reason = "texts are below 2^32 bytes")]
            scratch.drop_bytes(out, text.len() as u32);
        }
        Ok(())
    }
}

/// Calls the reference crate, which panics on some files and texts where it should give an error.
pub(super) fn contained<T>(call: impl FnOnce() -> tokenizers::Result<T>) -> tokenizers::Result<T> {
    // The crate's values are not used after a panic: loading drops them, and encoding leaves them
    // as they were.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(call))
        .unwrap_or_else(|_| Err("the tokenizers crate panicked".into()))
}

/// The exact cuts, where the tokens' bytes are the text.
fn cuts_by_bytes(ids: &[TokenId], text: &str, vocab: &Vocab) -> Option<Vec<usize>> {
    let mut cuts = vec![0];
    let mut at = 0;
    for &id in ids {
        let bytes = vocab.bytes(id)?;
        if !text.as_bytes()[at..].starts_with(bytes) {
            return None;
        }
        at += bytes.len();
        cuts.push(at);
    }
    (at == text.len()).then_some(cuts)
}

/// Cuts from the reference's places: each token reaches to the start of the next, so that nothing
/// is left between them. Tokens that share a character (byte fallback) get one byte of it each.
fn cuts_by_offsets(encoding: &tokenizers::Encoding, text: &str) -> Vec<usize> {
    let offsets = encoding.get_offsets();
    let mut cuts = Vec::with_capacity(offsets.len() + 1);
    let mut last = 0;
    cuts.push(last);
    for pair in offsets.windows(2) {
        let (start, end) = pair[1];
        let cut = if pair[0] == pair[1] { (last + 1).min(end) } else { start };
        last = cut.clamp(last, text.len());
        cuts.push(last);
    }
    cuts.push(text.len());
    cuts
}
