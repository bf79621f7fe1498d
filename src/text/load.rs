//! What both file forms of a byte-level BPE share: from strings and merges to a tokenizer.

use std::collections::HashMap;
use std::path::Path;

use super::bpe::Bpe;
use super::byte_level::Alphabet;
use super::classes::Classes;
use super::encoder::{ByteLevel, Encoder, UnicodeForm};
use super::fingerprint::{Settings, fingerprint};
use super::split::PreTokenizer;
use super::tokenizer::{Extras, Parts, Tokenizer};
use super::vocab::{Slot, Vocab};
use crate::error::{Error, Result};
use crate::token::TokenId;

/// Most ids of a vocabulary; the largest known ones have about 2^18.
pub(super) const MAX_VOCAB: usize = 1 << 22;
/// What to do about a tokenizer that this crate cannot build from a GGUF.
pub(super) const WAY_OUT: &str = "give the model's own file with --tokenizer tokenizer.json";

/// A byte-level BPE as a file describes it.
pub(super) struct Description {
    /// One entry per id.
    pub(super) tokens: Vec<(Slot, String)>,
    /// Pairs of strings in order of rank.
    pub(super) merges: Vec<(String, String)>,
    pub(super) pre: PreTokenizer,
    pub(super) normalizer: UnicodeForm,
    pub(super) prefix_space: bool,
    pub(super) ignore_merges: bool,
    pub(super) extras: Extras,
}

fn damaged(origin: &Path, problem: String) -> Error {
    Error::file(origin, None, problem, "the file is damaged: fetch it again")
}

/// Builds the tokenizer.
pub(super) fn byte_level(description: Description, origin: &Path) -> Result<Tokenizer> {
    let Description { tokens, merges, pre, normalizer, prefix_space, ignore_merges, extras } =
        description;
    if tokens.is_empty() || tokens.len() > MAX_VOCAB {
        return Err(damaged(
            origin,
            format!("a vocabulary of {} ids; allowed: 1 to {MAX_VOCAB}", tokens.len()),
        ));
    }
    let alphabet = Alphabet::new();
    let mut vocab = Vocab::default();
    for (slot, piece) in &tokens {
        let bytes = match slot {
            // As the reference: a string with a foreign character stands for itself.
            Slot::Normal | Slot::Byte => alphabet.bytes(piece),
            Slot::Control | Slot::Added | Slot::Unused => None,
        };
        vocab.push(*slot, piece, bytes.as_deref().unwrap_or(piece.as_bytes()));
    }

    let mut ids: HashMap<&str, TokenId> = HashMap::new();
    for (id, slot, piece, _) in vocab.iter() {
        if let Some(other) = ids.insert(piece, id) {
            return Err(damaged(
                origin,
                format!("token {piece:?} ({slot:?}) has two ids, {other} and {id}"),
            ));
        }
    }
    let mut bytes = Box::new([None; 256]);
    let mut whole = HashMap::new();
    for (id, slot, _, token) in vocab.iter() {
        // Text never becomes a control token, whatever its spelling.
        if slot != Slot::Normal {
            continue;
        }
        if let [byte] = token {
            bytes[usize::from(*byte)] = Some(id);
        }
        if ignore_merges {
            whole.insert(token.to_vec(), id);
        }
    }
    let mut pairs = Vec::with_capacity(merges.len());
    let mut rules = Vec::with_capacity(merges.len());
    for (rank, (left, right)) in merges.iter().enumerate() {
        let id = |piece: &str| {
            ids.get(piece).copied().ok_or_else(|| {
                damaged(
                    origin,
                    format!("merge {rank} ({left:?} {right:?}) needs {piece:?}, which is no token"),
                )
            })
        };
        let (a, b, result) = (id(left)?, id(right)?, id(&format!("{left}{right}"))?);
        pairs.push((a, b));
        if vocab.slot(result) == Some(Slot::Normal) {
            rules.push((a, b, result, vocab.bytes(result).unwrap_or_default()));
        }
    }
    let normalizer_name = match normalizer {
        UnicodeForm::None => "none",
        UnicodeForm::Nfc => "nfc",
    };
    let settings = Settings {
        model: "bpe",
        pre_tokenizer: pre.name(),
        normalizer: normalizer_name,
        further: "",
        prefix_space,
        ignore_merges,
    };
    let fingerprint = fingerprint(&settings, &vocab, &pairs);
    let bpe = Bpe::new(bytes, rules.into_iter(), whole);
    let encoder = Encoder::ByteLevel(Box::new(ByteLevel {
        bpe,
        pre,
        classes: Classes::new()?,
        normalizer,
        prefix_space,
    }));
    let parts = Parts { vocab, encoder, fingerprint, strip_leading_space: false, extras };
    Ok(Tokenizer::assemble(parts, origin))
}
