//! The tokenizer inside a GGUF file (`tokenizer.ggml.*`).
//!
//! A GGUF names its pre-tokenizer and does not carry it, so an unknown name cannot be built and
//! is refused; so is a missing one, since the old default of other programs splits numbers
//! differently from most models that lack the key.

use super::encoder::UnicodeForm;
use super::load::{self, Description, WAY_OUT};
use super::split::PreTokenizer;
use super::tokenizer::{Extras, Tokenizer, complete_eos};
use super::vocab::{Slot, Vocab};
use crate::error::{Error, Result};
use crate::format::Gguf;
use crate::token::TokenId;

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const MERGES: &str = "tokenizer.ggml.merges";

/// Builds the tokenizer.
pub(super) fn load(gguf: &Gguf) -> Result<Tokenizer> {
    let missing = |key: &str| {
        Error::file(gguf.path(), None, format!("metadata key {key} is missing"), WAY_OUT)
    };
    match gguf.str(MODEL)?.ok_or_else(|| missing(MODEL))? {
        "gpt2" => {}
        other => {
            let kind = if other == "llama" { " (SentencePiece)" } else { "" };
            return Err(Error::Unsupported {
                what: "tokenizer model",
                found: format!("{other}{kind} in {}", gguf.path().display()),
                supported: format!("gpt2 (byte-level BPE); {WAY_OUT}"),
            });
        }
    }
    let name = gguf.str(PRE)?.ok_or_else(|| missing(PRE))?;
    let pre = PreTokenizer::from_name(name).ok_or_else(|| Error::Unsupported {
        what: "pre-tokenizer",
        found: format!("{name} in {}", gguf.path().display()),
        supported: format!("{}; {WAY_OUT}", PreTokenizer::ALL.map(PreTokenizer::name).join(", ")),
    })?;
    let prefix_space = gguf.bool("tokenizer.ggml.add_space_prefix")?.unwrap_or(false);
    if prefix_space && pre != PreTokenizer::Gpt2 {
        return Err(Error::Unsupported {
            what: "prefix space",
            found: format!("with the pre-tokenizer {name} in {}", gguf.path().display()),
            supported: format!("with gpt-2 only; {WAY_OUT}"),
        });
    }

    let damaged = |problem: String| Error::file(gguf.path(), None, problem, WAY_OUT);
    let types = gguf.integers(TYPES)?.ok_or_else(|| missing(TYPES))?;
    let strings = gguf.strings(TOKENS)?.ok_or_else(|| missing(TOKENS))?;
    if strings.len() != types.len() || strings.len() > load::MAX_VOCAB {
        let problem = format!(
            "{} tokens and {} token types; both must be equal and at most {}",
            strings.len(),
            types.len(),
            load::MAX_VOCAB
        );
        return Err(damaged(problem));
    }
    let mut tokens = Vec::with_capacity(types.len());
    for (id, (bytes, kind)) in strings.zip(&types).enumerate() {
        let piece = std::str::from_utf8(bytes)
            .map_err(|_| damaged(format!("token {id} in {TOKENS} is not UTF-8")))?;
        let slot = match kind {
            1 => Slot::Normal,
            // "Unknown" is written for the token that stands for what cannot be written.
            2 | 3 => Slot::Control,
            4 => Slot::Added,
            5 => Slot::Unused,
            6 => Slot::Byte,
            other => return Err(damaged(format!("token {id} has type {other}; known: 1 to 6"))),
        };
        tokens.push((slot, piece.to_owned()));
    }

    let mut merges = Vec::new();
    for (rank, bytes) in gguf.strings(MERGES)?.ok_or_else(|| missing(MERGES))?.enumerate() {
        let pair = std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| text.split_once(' '))
            .filter(|(left, right)| !left.is_empty() && !right.is_empty() && !right.contains(' '))
            .ok_or_else(|| {
                damaged(format!("merge {rank} in {MERGES} is not two strings with a space between"))
            })?;
        merges.push((pair.0.to_owned(), pair.1.to_owned()));
    }

    let extras = extras(gguf, &tokens, pre)?;
    let description = Description {
        tokens,
        merges,
        pre,
        // The reference file of these models normalises; the GGUF form does not say so.
        normalizer: if pre == PreTokenizer::Qwen2 { UnicodeForm::Nfc } else { UnicodeForm::None },
        prefix_space,
        ignore_merges: pre == PreTokenizer::LlamaBpe,
        extras,
    };
    load::byte_level(description, gguf.path())
}

fn extras(gguf: &Gguf, tokens: &[(Slot, String)], pre: PreTokenizer) -> Result<Extras> {
    let id = |name: &str| -> Result<Option<TokenId>> {
        let key = format!("tokenizer.ggml.{name}_token_id");
        match gguf.u32(&key)? {
            Some(id) if id as usize >= tokens.len() => Err(Error::file(
                gguf.path(),
                None,
                format!("{key} is {id}, outside the vocabulary of {} ids", tokens.len()),
                WAY_OUT,
            )),
            other => Ok(other),
        }
    };
    let mut eos = Vec::new();
    for name in ["eos", "eot", "eom"] {
        if let Some(id) = id(name)?
            && !eos.contains(&id)
        {
            eos.push(id);
        }
    }
    let mut control = Vocab::default();
    for (slot, piece) in tokens {
        control.push(*slot, piece, &[]);
    }
    complete_eos(&mut eos, &control);
    Ok(Extras {
        bos: id("bos")?,
        eos,
        pad: id("padding")?,
        unknown: id("unknown")?,
        // Llama 3 files from before the key existed want it.
        add_bos: gguf
            .bool("tokenizer.ggml.add_bos_token")?
            .unwrap_or(pre == PreTokenizer::LlamaBpe),
        template: gguf.str("tokenizer.chat_template")?.map(str::to_owned),
    })
}
