//! Tokenizers for the tests: the default model's, and the same one as a `tokenizer.json`.

use std::sync::{Arc, OnceLock};

use greenmark::format::Gguf;
use greenmark::text::Tokenizer;
use serde_json::{Value, json};

use crate::support::default_model;

/// The tokenizer of the default model, out of its GGUF.
pub(crate) fn smollm2() -> &'static Tokenizer {
    static TOKENIZER: OnceLock<Tokenizer> = OnceLock::new();
    TOKENIZER.get_or_init(|| Tokenizer::open(default_model()).unwrap())
}

/// The vocabulary of the default model in the form of a `tokenizer.json`, with the parts that
/// differ between model families left to the caller.
pub(crate) fn json_with(pre_tokenizer: &Value, normalizer: &Value, ignore_merges: bool) -> Value {
    let gguf = Gguf::open(default_model()).unwrap();
    let texts = |key: &str| -> Vec<String> {
        gguf.strings(key)
            .unwrap()
            .unwrap()
            .map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
            .collect()
    };
    let tokens = texts("tokenizer.ggml.tokens");
    let types = gguf.integers("tokenizer.ggml.token_type").unwrap().unwrap();
    let added: Vec<Value> = tokens
        .iter()
        .zip(&types)
        .enumerate()
        .filter(|(_, (_, ty))| **ty == 3)
        .map(|(id, (text, _))| {
            json!({ "id": id, "content": text, "single_word": false, "lstrip": false,
                    "rstrip": false, "normalized": false, "special": true })
        })
        .collect();
    let vocab: serde_json::Map<String, Value> =
        tokens.iter().enumerate().map(|(id, text)| (text.clone(), json!(id))).collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": null,
        "decoder": { "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
                     "use_regex": true },
        "model": { "type": "BPE", "dropout": null, "unk_token": null,
                   "continuing_subword_prefix": null, "end_of_word_suffix": null,
                   "fuse_unk": false, "byte_fallback": false, "ignore_merges": ignore_merges,
                   "vocab": vocab, "merges": texts("tokenizer.ggml.merges") }
    })
}

/// The pre-tokenizer of a family as `tokenizer.json` writes it.
pub(crate) fn pre_tokenizer_json(name: &str) -> Value {
    let byte_level = |use_regex: bool| {
        json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                "use_regex": use_regex })
    };
    let split = |numbers: &str| {
        let pattern = [
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|",
            numbers,
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ]
        .concat();
        json!({ "type": "Sequence", "pretokenizers": [
            { "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated",
              "invert": false },
            byte_level(false)
        ] })
    };
    match name {
        "gpt-2" => byte_level(true),
        "smollm" => json!({ "type": "Sequence", "pretokenizers": [
            { "type": "Digits", "individual_digits": true }, byte_level(true)
        ] }),
        "llama-bpe" => split(r"\p{N}{1,3}"),
        "qwen2" => split(r"\p{N}"),
        other => panic!("no pre-tokenizer {other}"),
    }
}

/// Our tokenizer and the reference crate's, both from one `tokenizer.json` of a family.
pub(crate) struct Pair {
    pub(crate) ours: Tokenizer,
    pub(crate) reference: tokenizers::Tokenizer,
}

/// The pair of a family, built once.
pub(crate) fn pair(name: &'static str) -> Arc<Pair> {
    type Slot = (&'static str, OnceLock<Arc<Pair>>);
    static PAIRS: [Slot; 4] = [
        ("gpt-2", OnceLock::new()),
        ("smollm", OnceLock::new()),
        ("llama-bpe", OnceLock::new()),
        ("qwen2", OnceLock::new()),
    ];
    let (_, slot) = PAIRS.iter().find(|(known, _)| *known == name).unwrap();
    slot.get_or_init(|| {
        let normalizer = if name == "qwen2" { json!({ "type": "NFC" }) } else { Value::Null };
        let mut root = json_with(&pre_tokenizer_json(name), &normalizer, name == "llama-bpe");
        let ours = Tokenizer::from_json_bytes(root.to_string().as_bytes(), name).unwrap();
        // Our contract takes the text of control tokens for plain text, so the reference gets none.
        root["added_tokens"] = json!([]);
        let reference = tokenizers::Tokenizer::from_bytes(root.to_string()).unwrap();
        Arc::new(Pair { ours, reference })
    })
    .clone()
}

impl Pair {
    pub(crate) fn reference_ids(&self, text: &str) -> Vec<u32> {
        self.reference.encode_fast(text, false).unwrap().get_ids().to_vec()
    }
}
