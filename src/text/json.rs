//! `tokenizer.json`, the file of the reference crate, and the files beside it.
//!
//! A byte-level BPE whose parts we know becomes our own encoder, with the fingerprint of the
//! GGUF of the same model. Anything else of BPE or Unigram kind goes through the reference crate.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use super::encoder::UnicodeForm;
use super::json_reference;
use super::load::{self, Description, MAX_VOCAB};
use super::split::PreTokenizer;
use super::tokenizer::{Extras, Tokenizer, complete_eos};
use super::vocab::{Slot, Vocab};
use crate::error::{Error, Result};
use crate::format::{Map, wrong_file};
use crate::token::TokenId;

const LLAMA_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The byte-order mark that some editors put before a file.
const BOM: &[u8] = "\u{feff}".as_bytes();

/// The files that may lie beside a `tokenizer.json`.
#[derive(Default)]
pub(super) struct Siblings {
    config: Option<Value>,
    template: Option<String>,
}

/// A file, if it exists.
fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", path, e)),
    }
}

fn parse(bytes: &[u8], origin: &Path) -> Result<Value> {
    let bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
    serde_json::from_slice(bytes).map_err(|e| {
        Error::file(origin, None, format!("not JSON: {e}"), "give a tokenizer.json or a GGUF file")
    })
}

/// Opens a `tokenizer.json` with its siblings.
pub(super) fn open(path: &Path) -> Result<Tokenizer> {
    let map = Map::open(path)?;
    if let Some(error) = wrong_file(path, &map) {
        return Err(error);
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let config = folder.join("tokenizer_config.json");
    let jinja = folder.join("chat_template.jinja");
    let siblings = Siblings {
        config: read(&config)?.map(|bytes| parse(&bytes, &config)).transpose()?,
        template: read(&jinja)?
            .map(|bytes| {
                String::from_utf8(bytes).map_err(|_| damaged(&jinja, "not UTF-8".to_owned()))
            })
            .transpose()?,
    };
    from_bytes(&map, path, siblings)
}

pub(super) fn damaged(origin: &Path, problem: String) -> Error {
    Error::file(origin, None, problem, "fetch the model's tokenizer.json again")
}

/// An entry of `added_tokens`.
#[derive(serde::Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the fields of the file")]
struct Added {
    id: u64,
    content: String,
    #[serde(default)]
    special: bool,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
}

/// Whether an added token is a control token. Beside the flag, the spelling counts, as it does
/// where GGUF files are written: some models mark `<|...|>` as not special by mistake.
fn is_control(token: &Added) -> bool {
    let text = token.content.as_str();
    token.special
        || (text.starts_with("<|") && text.ends_with("|>"))
        || (text.starts_with("<｜") && text.ends_with("｜>"))
        || (text.starts_with("<unused") && text.ends_with('>'))
        || matches!(text, "<pad>" | "<mask>" | "<2mass>" | "[@BOS@]")
}

/// Builds the tokenizer.
pub(super) fn from_bytes(bytes: &[u8], origin: &Path, siblings: Siblings) -> Result<Tokenizer> {
    let root = parse(bytes, origin)?;
    let model = root
        .get("model")
        .filter(|model| model.is_object())
        .ok_or_else(|| damaged(origin, "no tokenizer: the object `model` is missing".to_owned()))?;
    let kind = match model.get("type").and_then(Value::as_str) {
        Some("BPE") => "BPE",
        Some("Unigram") => "Unigram",
        // Old files leave the type out.
        None if model.get("merges").is_some() => "BPE",
        other => {
            return Err(Error::Unsupported {
                what: "tokenizer model",
                found: format!("{} in {}", other.unwrap_or("of no type"), origin.display()),
                supported: "BPE, Unigram".to_owned(),
            });
        }
    };

    let added: Vec<Added> = match root.get("added_tokens") {
        None | Some(Value::Null) => Vec::new(),
        Some(list) => Vec::deserialize_from(list)
            .map_err(|e| damaged(origin, format!("added_tokens: {e}")))?,
    };
    let mut tokens = vocabulary(model, kind, origin)?;
    for token in &added {
        let control = is_control(token);
        if !control && (token.single_word || token.lstrip || token.rstrip) {
            return Err(Error::Unsupported {
                what: "added token",
                found: format!("{:?} with single_word, lstrip or rstrip", token.content),
                supported: "added tokens without these".to_owned(),
            });
        }
        let slot = if control { Slot::Control } else { Slot::Added };
        place(&mut tokens, token.id, slot, &token.content, origin)?;
    }
    let extras = extras(&root, siblings, &tokens, origin)?;

    if kind == "BPE"
        && let Some((pre, prefix_space)) = known_pre_tokenizer(&root)
        && let Some(normalizer) = known_normalizer(&root)
        && is_plain_bpe(model)
    {
        return load::byte_level(
            Description {
                tokens,
                merges: merges(model, origin)?,
                pre,
                normalizer,
                prefix_space,
                ignore_merges: flag(model, "ignore_merges"),
                extras,
            },
            origin,
        );
    }
    json_reference::load(root, kind, &tokens, extras, origin)
}

/// `Vec<T>` out of a JSON value without copying it first.
trait DeserializeFrom: Sized {
    fn deserialize_from(value: &Value) -> serde_json::Result<Self>;
}

impl<T: serde::de::DeserializeOwned> DeserializeFrom for Vec<T> {
    fn deserialize_from(value: &Value) -> serde_json::Result<Self> {
        serde::Deserialize::deserialize(value)
    }
}

pub(super) fn flag(object: &Value, name: &str) -> bool {
    object.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// Sets the token of an id.
fn place(
    tokens: &mut Vec<(Slot, String)>,
    id: u64,
    slot: Slot,
    text: &str,
    origin: &Path,
) -> Result<()> {
    let index = usize::try_from(id).ok().filter(|&index| index < MAX_VOCAB).ok_or_else(|| {
        damaged(origin, format!("token {text:?} has the id {id}; allowed: below {MAX_VOCAB}"))
    })?;
    if index >= tokens.len() {
        tokens.resize_with(index + 1, || (Slot::Unused, String::new()));
    }
    let old = &mut tokens[index];
    if old.0 != Slot::Unused && old.1 != text {
        return Err(damaged(origin, format!("id {id} stands for {:?} and {text:?}", old.1)));
    }
    *old = (slot, text.to_owned());
    Ok(())
}

fn vocabulary(model: &Value, kind: &str, origin: &Path) -> Result<Vec<(Slot, String)>> {
    let mut tokens = Vec::new();
    match (kind, model.get("vocab")) {
        ("BPE", Some(Value::Object(map))) => {
            let fallback = flag(model, "byte_fallback");
            for (piece, id) in map {
                let id = id.as_u64().ok_or_else(|| {
                    damaged(origin, format!("the id of token {piece:?} is {id}, not a number"))
                })?;
                let byte = fallback && byte_token(piece).is_some();
                let slot = if byte { Slot::Byte } else { Slot::Normal };
                place(&mut tokens, id, slot, piece, origin)?;
            }
        }
        ("Unigram", Some(Value::Array(list))) => {
            let fallback = flag(model, "byte_fallback");
            let unknown = model.get("unk_id").and_then(Value::as_u64);
            for (id, entry) in (0u64..).zip(list) {
                let piece = entry.get(0).and_then(Value::as_str).ok_or_else(|| {
                    damaged(
                        origin,
                        format!("vocabulary entry {id} is not a pair of text and score"),
                    )
                })?;
                let slot = if unknown == Some(id) {
                    Slot::Control
                } else if fallback && byte_token(piece).is_some() {
                    Slot::Byte
                } else {
                    Slot::Normal
                };
                place(&mut tokens, id, slot, piece, origin)?;
            }
        }
        _ => return Err(damaged(origin, "the vocabulary (model.vocab) is missing".to_owned())),
    }
    Ok(tokens)
}

/// The byte of a byte-fallback token, for example 10 for `<0x0A>`.
pub(super) fn byte_token(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

pub(super) fn merges(model: &Value, origin: &Path) -> Result<Vec<(String, String)>> {
    let list = model.get("merges").and_then(Value::as_array);
    let list = list.ok_or_else(|| damaged(origin, "model.merges is missing".to_owned()))?;
    list.iter()
        .enumerate()
        .map(|(rank, entry)| {
            let pair = match entry {
                Value::String(text) => text.split_once(' '),
                Value::Array(pair) => match pair.as_slice() {
                    [Value::String(left), Value::String(right)] => Some((&**left, &**right)),
                    _ => None,
                },
                _ => None,
            };
            pair.map(|(left, right)| (left.to_owned(), right.to_owned()))
                .ok_or_else(|| damaged(origin, format!("merge {rank} is not a pair of strings")))
        })
        .collect()
}

/// Whether a BPE model has none of the settings that our encoder lacks.
fn is_plain_bpe(model: &Value) -> bool {
    let empty = |name: &str| match model.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Number(number)) => number.as_f64() == Some(0.0),
        Some(_) => false,
    };
    // An unknown-token setting is not looked at: text never becomes a control token.
    empty("dropout")
        && empty("continuing_subword_prefix")
        && empty("end_of_word_suffix")
        && !flag(model, "byte_fallback")
}

fn known_normalizer(root: &Value) -> Option<UnicodeForm> {
    match root.get("normalizer") {
        None | Some(Value::Null) => Some(UnicodeForm::None),
        Some(normalizer) if normalizer["type"] == "NFC" => Some(UnicodeForm::Nfc),
        Some(_) => None,
    }
}

/// The pre-tokenizer by name, and whether it puts a space before the text.
fn known_pre_tokenizer(root: &Value) -> Option<(PreTokenizer, bool)> {
    let byte_level = |value: &Value, regex: bool| {
        // Without the field, the reference uses its expression.
        let uses = value.get("use_regex").and_then(Value::as_bool).unwrap_or(true);
        (value["type"] == "ByteLevel" && uses == regex).then(|| flag(value, "add_prefix_space"))
    };
    let pre = root.get("pre_tokenizer")?;
    if let Some(prefix) = byte_level(pre, true) {
        return Some((PreTokenizer::Gpt2, prefix));
    }
    let (None, "Sequence", [first, second]) =
        (pre.get("pattern"), pre["type"].as_str()?, pre["pretokenizers"].as_array()?.as_slice())
    else {
        return None;
    };
    if first["type"] == "Digits" && flag(first, "individual_digits") {
        return (byte_level(second, true) == Some(false)).then_some((PreTokenizer::Smollm, false));
    }
    let plain = first["type"] == "Split"
        && first["behavior"] == "Isolated"
        && !flag(first, "invert")
        && byte_level(second, false) == Some(false);
    match first["pattern"]["Regex"].as_str()? {
        LLAMA_PATTERN if plain => Some((PreTokenizer::LlamaBpe, false)),
        QWEN_PATTERN if plain => Some((PreTokenizer::Qwen2, false)),
        _ => None,
    }
}

fn extras(
    root: &Value,
    siblings: Siblings,
    tokens: &[(Slot, String)],
    origin: &Path,
) -> Result<Extras> {
    let ids: HashMap<&str, TokenId> = (0u32..)
        .zip(tokens)
        .filter(|(_, (slot, _))| *slot != Slot::Unused)
        .map(|(id, (_, piece))| (piece.as_str(), id))
        .collect();
    let config = siblings.config.unwrap_or(Value::Null);
    let id = |name: &str| -> Result<Option<TokenId>> {
        let text = match config.get(name) {
            Some(Value::String(text)) => text.as_str(),
            Some(Value::Object(token)) => match token.get("content").and_then(Value::as_str) {
                Some(text) => text,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        ids.get(text).copied().map(Some).ok_or_else(|| {
            damaged(
                origin,
                format!("{name} of tokenizer_config.json is {text:?}, which is no token"),
            )
        })
    };
    let written = first_special(root.get("post_processor").unwrap_or(&Value::Null));
    let bos = id("bos_token")?;
    let written = written.and_then(|text| ids.get(text).copied());
    let mut eos = Vec::from_iter(id("eos_token")?);
    let mut vocab = Vocab::default();
    for (slot, piece) in tokens {
        vocab.push(*slot, piece, &[]);
    }
    complete_eos(&mut eos, &vocab);
    let template = match siblings.template {
        Some(template) => Some(template),
        None => match config.get("chat_template") {
            Some(Value::String(template)) => Some(template.clone()),
            // Several named templates: the one called `default`.
            Some(Value::Array(list)) => list
                .iter()
                .find(|entry| entry["name"] == "default")
                .and_then(|entry| entry["template"].as_str())
                .map(str::to_owned),
            _ => None,
        },
    };
    Ok(Extras {
        bos: bos.or(written),
        eos,
        pad: id("pad_token")?,
        unknown: id("unk_token")?,
        add_bos: config
            .get("add_bos_token")
            .and_then(Value::as_bool)
            .unwrap_or(written.is_some() && (bos.is_none() || bos == written)),
        template,
    })
}

/// The special token that a post-processor writes before a text.
fn first_special(processor: &Value) -> Option<&str> {
    match processor["type"].as_str()? {
        "TemplateProcessing" => processor["single"][0]["SpecialToken"]["id"].as_str(),
        "Sequence" => processor["processors"].as_array()?.iter().find_map(first_special),
        _ => None,
    }
}
