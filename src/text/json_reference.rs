//! A `tokenizer.json` that our own encoder does not know, through the reference crate.
//!
//! The crate sees the file without its added tokens, and with its control tokens renamed: literal
//! tokens are found by [`super::added`], so that no text of a user becomes a control token.

use std::path::Path;

use serde_json::Value;

use super::byte_level::Alphabet;
use super::encoder::{Encoder, Reference, contained};
use super::fingerprint::{Settings, fingerprint};
use super::json::{byte_token, damaged, flag, merges};
use super::tokenizer::{Extras, Parts, Tokenizer};
use super::vocab::{Slot, Vocab};
use crate::error::{Error, Result};
use crate::token::TokenId;

/// How ids become bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decoding {
    ByteLevel,
    SentencePiece,
}

/// Whether a decoder, or a part of it, passes a test.
fn any_part(decoder: &Value, test: &dyn Fn(&Value) -> bool) -> bool {
    test(decoder)
        || decoder["decoders"]
            .as_array()
            .is_some_and(|parts| parts.iter().any(|part| any_part(part, test)))
}

/// Builds the tokenizer.
pub(super) fn load(
    mut root: Value,
    kind: &str,
    tokens: &[(Slot, String)],
    extras: Extras,
    origin: &Path,
) -> Result<Tokenizer> {
    let decoder = root.get("decoder").cloned().unwrap_or(Value::Null);
    let has = |wanted: &'static str| any_part(&decoder, &|part| part["type"] == wanted);
    let decoding = if has("ByteLevel") {
        Decoding::ByteLevel
    } else if has("ByteFallback") || has("Metaspace") || has("Replace") {
        Decoding::SentencePiece
    } else {
        return Err(Error::Unsupported {
            what: "decoder",
            found: format!("{} in {}", decoder["type"], origin.display()),
            supported: "ByteLevel, Metaspace, ByteFallback".to_owned(),
        });
    };
    let strip_leading_space = decoding == Decoding::SentencePiece
        && any_part(&decoder, &|part| {
            (part["type"] == "Strip" && part["content"] == " " && part["start"] != 0)
                || (part["type"] == "Metaspace"
                    && part["prepend_scheme"] != "never"
                    && part["add_prefix_space"] != false)
        });

    let alphabet = Alphabet::new();
    let mut vocab = Vocab::default();
    for (slot, piece) in tokens {
        let bytes = match (slot, decoding) {
            (Slot::Byte, _) => byte_token(piece).map(|byte| vec![byte]),
            (Slot::Normal, Decoding::ByteLevel) => alphabet.bytes(piece),
            (Slot::Normal, Decoding::SentencePiece) => {
                Some(piece.replace('\u{2581}', " ").into_bytes())
            }
            _ => None,
        };
        vocab.push(*slot, piece, bytes.as_deref().unwrap_or(piece.as_bytes()));
    }

    let model = &root["model"];
    if model["continuing_subword_prefix"].as_str().is_some_and(|prefix| !prefix.is_empty()) {
        return Err(Error::Unsupported {
            what: "model setting",
            found: format!("continuing_subword_prefix in {}", origin.display()),
            supported: "BPE and Unigram without it".to_owned(),
        });
    }
    let pairs = if kind == "BPE" {
        let ids = vocab.by_piece();
        merges(model, origin)?
            .iter()
            .map(|(left, right)| {
                let id = |piece: &str| ids.get(piece).copied();
                let result = id(&format!("{left}{right}"));
                id(left).zip(id(right)).filter(|_| result.is_some()).ok_or_else(|| {
                    damaged(
                        origin,
                        format!("merge {left:?} {right:?} uses or makes what is no token"),
                    )
                })
            })
            .collect::<Result<Vec<_>>>()?
    } else {
        Vec::new()
    };
    // Everything of the model beside the merges, scores included, decides about ids.
    let mut further = model.clone();
    if let Some(object) = further.as_object_mut() {
        object.remove("merges");
        if kind == "BPE" {
            object.remove("vocab");
        }
        object.sort_keys();
    }
    let sorted = |name: &str| {
        let mut value = root.get(name).cloned().unwrap_or(Value::Null);
        value.sort_all_objects();
        value.to_string()
    };
    further.sort_all_objects();
    let settings = Settings {
        model: &kind.to_lowercase(),
        pre_tokenizer: &sorted("pre_tokenizer"),
        normalizer: &sorted("normalizer"),
        further: &further.to_string(),
        prefix_space: false,
        ignore_merges: flag(model, "ignore_merges"),
    };
    let fingerprint = fingerprint(&settings, &vocab, &pairs);

    // Literal tokens are found by us, so that text never matches a control token; and what
    // changes ids after encoding is switched off.
    hide_control(&mut root["model"], &vocab);
    if let Some(object) = root.as_object_mut() {
        object.insert("added_tokens".to_owned(), Value::Array(Vec::new()));
        for name in ["post_processor", "truncation", "padding"] {
            object.insert(name.to_owned(), Value::Null);
        }
    }
    let text = root.to_string();
    let tokenizer = contained(|| tokenizers::Tokenizer::from_bytes(&text))
        .map_err(|e| damaged(origin, format!("the reference tokenizer refuses it: {e}")))?;
    let encoder = Encoder::Reference(Box::new(Reference { tokenizer }));
    let parts = Parts { vocab, encoder, fingerprint, strip_leading_space, extras };
    Ok(Tokenizer::assemble(parts, origin))
}

/// Renames the control tokens inside a model to strings that no text of a user contains, so that
/// their spelling in a text is never taken for them.
fn hide_control(model: &mut Value, vocab: &Vocab) {
    // Noncharacters are never exchanged between programs; the id makes the name unique.
    let hidden = |id: TokenId| format!("\u{fdd0}\u{fdd1}{id}");
    for (piece, id) in vocab.of(Slot::Control) {
        match &mut model["vocab"] {
            Value::Array(list) => {
                if let Some(entry) = list.get_mut(id as usize) {
                    entry[0] = Value::String(hidden(id));
                }
            }
            Value::Object(map) => {
                if let Some(number) = map.swap_remove(piece) {
                    map.insert(hidden(id), number);
                }
            }
            _ => {}
        }
        if model["unk_token"] == piece {
            model["unk_token"] = Value::String(hidden(id));
        }
    }
}
