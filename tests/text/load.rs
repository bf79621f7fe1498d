//! Which tokenizers load, which are refused and how, and those that go through the reference
//! crate.

use greenmark::text::{Bos, PreTokenizer, Tokenizer};
use greenmark::token::TokenKind;
use greenmark::{Error, ErrorKind};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixtures::{json_with, pre_tokenizer_json};
use crate::gguf::Builder;
use crate::support::default_model;

/// The byte-level character of a byte, from the definition of the alphabet.
fn letter(byte: u8) -> String {
    let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let code = if printable(byte) {
        u32::from(byte)
    } else {
        256 + u32::try_from((0..byte).filter(|&b| !printable(b)).count()).unwrap()
    };
    char::from_u32(code).unwrap().to_string()
}

/// Tokens of a small byte-level vocabulary: all bytes, three merges, control and added tokens.
fn tokens() -> (Vec<String>, Vec<i32>, Vec<String>) {
    let mut tokens: Vec<String> = (0..=255).map(letter).collect();
    let mut types = vec![1; 256];
    for (text, ty) in
        [("ab", 1), ("Ġab", 1), ("12", 1), ("<|end|>", 3), ("<think>", 4), ("[PAD]", 5)]
    {
        tokens.push(text.to_owned());
        types.push(ty);
    }
    let merges = ["a b", "Ġ ab", "1 2"].map(str::to_owned).to_vec();
    (tokens, types, merges)
}

fn builder(pre: &str) -> Builder {
    let (tokens, types, merges) = tokens();
    Builder::new()
        .str("general.architecture", "llama")
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", pre)
        .strings("tokenizer.ggml.tokens", &tokens)
        .i32s("tokenizer.ggml.token_type", &types)
        .strings("tokenizer.ggml.merges", &merges)
}

fn open(builder: &Builder) -> Result<Tokenizer, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, builder.bytes()).unwrap();
    Tokenizer::open(&path)
}

/// The same vocabulary as a `tokenizer.json`.
fn small_json(pre: &str) -> Value {
    let (tokens, types, merges) = tokens();
    let added: Vec<Value> = tokens
        .iter()
        .zip(&types)
        .enumerate()
        .filter(|(_, (_, ty))| matches!(ty, 3 | 4))
        // The flag of `<|end|>` is wrong, as in some published files; its spelling counts too.
        .map(|(id, (text, _))| json!({ "id": id, "content": text, "special": false }))
        .collect();
    let vocab: serde_json::Map<String, Value> =
        tokens.iter().take(259).enumerate().map(|(id, text)| (text.clone(), json!(id))).collect();
    let merges: Vec<Value> =
        merges.iter().map(|pair| json!(pair.split(' ').collect::<Vec<_>>())).collect();
    let normalizer = if pre == "qwen2" { json!({ "type": "NFC" }) } else { Value::Null };
    json!({
        "added_tokens": added, "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer_json(pre), "post_processor": null,
        "decoder": { "type": "ByteLevel" },
        "model": { "type": "BPE", "ignore_merges": pre == "llama-bpe", "vocab": vocab,
                   "merges": merges }
    })
}

fn from_json(root: &Value) -> Result<Tokenizer, Error> {
    Tokenizer::from_json_bytes(root.to_string().as_bytes(), "tokenizer.json")
}

#[track_caller]
fn assert_says(error: &Error, parts: &[&str]) {
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    let message = error.to_string();
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

#[test]
fn g01_other_tokenizer_models_are_refused_with_the_way_out() {
    let bytes = std::fs::read(default_model()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spm.gguf");
    let mut patched = bytes;
    assert_eq!(&patched[1014..1018], b"gpt2");
    patched[1014..1018].copy_from_slice(b"spm1");
    std::fs::write(&path, &patched).unwrap();
    assert_says(&Tokenizer::open(&path).unwrap_err(), &["spm1", "--tokenizer tokenizer.json"]);

    let sentencepiece =
        Builder::new().str("general.architecture", "llama").str("tokenizer.ggml.model", "llama");
    let error = open(&sentencepiece).unwrap_err();
    assert_says(&error, &["llama (SentencePiece)", "--tokenizer tokenizer.json"]);
    let none = Builder::new().str("general.architecture", "llama");
    let error = open(&none).unwrap_err();
    assert_says(&error, &["tokenizer.ggml.model is missing", "--tokenizer tokenizer.json"]);
}

#[test]
fn t14_an_unknown_or_missing_pre_tokenizer_is_an_error() {
    for name in ["default", "", "falcon", "smollm2", "gpt2"] {
        let error = open(&builder(name)).unwrap_err();
        assert_says(&error, &[name, "gpt-2, smollm, llama-bpe, qwen2", "--tokenizer"]);
    }
    let (tokens, types, merges) = tokens();
    let missing = Builder::new()
        .str("tokenizer.ggml.model", "gpt2")
        .strings("tokenizer.ggml.tokens", &tokens)
        .i32s("tokenizer.ggml.token_type", &types)
        .strings("tokenizer.ggml.merges", &merges);
    assert_says(&open(&missing).unwrap_err(), &["tokenizer.ggml.pre is missing", "--tokenizer"]);
}

#[test]
fn damaged_tokenizer_metadata_is_named() {
    let (tokens, types, merges) = tokens();
    let with = |tokens: &[String], types: &[i32], merges: &[String]| {
        open(
            &Builder::new()
                .str("tokenizer.ggml.model", "gpt2")
                .str("tokenizer.ggml.pre", "gpt-2")
                .strings("tokenizer.ggml.tokens", tokens)
                .i32s("tokenizer.ggml.token_type", types)
                .strings("tokenizer.ggml.merges", merges),
        )
    };
    assert!(with(&tokens, &types, &merges).is_ok());
    assert_says(&with(&tokens, &types[1..], &merges).unwrap_err(), &["262 tokens and 261"]);
    let mut bad = types.clone();
    bad[7] = 9;
    assert_says(&with(&tokens, &bad, &merges).unwrap_err(), &["token 7 has type 9"]);
    let mut bad = tokens.clone();
    bad[257] = "ab".to_owned();
    assert_says(&with(&bad, &types, &merges).unwrap_err(), &["\"ab\"", "256 and 257"]);
    for merge in ["ab", "a b c", " b", "zz b"] {
        let merges = vec![merge.to_owned()];
        assert_says(&with(&tokens, &types, &merges).unwrap_err(), &["merge 0"]);
    }
    let error = open(&builder("gpt-2").u32("tokenizer.ggml.eos_token_id", 9_999)).unwrap_err();
    assert_says(&error, &["eos_token_id is 9999", "262 ids"]);
    let error = open(&builder("smollm").bool("tokenizer.ggml.add_space_prefix", true));
    assert_says(&error.unwrap_err(), &["prefix space", "smollm"]);
}

#[test]
fn both_file_forms_give_one_tokenizer_for_every_family() {
    for pre in PreTokenizer::ALL {
        let gguf = open(&builder(pre.name())).unwrap();
        let json = from_json(&small_json(pre.name())).unwrap();
        assert_eq!(gguf.fingerprint(), json.fingerprint(), "{pre:?}");
        assert_eq!(gguf.control_ids(), [259]);
        assert_eq!(json.control_ids(), [259]);
        assert_eq!(gguf.eos_ids(), [259]);
        // Padding ids are in the GGUF only.
        assert_eq!((gguf.vocab_size(), json.vocab_size()), (262, 261));
        for tokenizer in [&gguf, &json] {
            // Added text is found before merging; control tokens and padding never are.
            assert_eq!(
                tokenizer.encode_ids("ab<think> ab<|end|>[PAD]").unwrap()[..4],
                [256, 260, 257, u32::from(b'<')]
            );
            assert!(tokenizer.encode_ids("<|end|>[PAD]").unwrap().iter().all(|id| *id < 259));
            assert_eq!(tokenizer.decode(&[256, 260, 257, 259]), b"ab<think> ab");
            assert_eq!(tokenizer.kind(260), Some(TokenKind::Normal));
        }
        let digits = gguf.encode_ids("12").unwrap();
        let one_by_one = matches!(pre, PreTokenizer::Smollm | PreTokenizer::Qwen2);
        assert_eq!(digits.len(), if one_by_one { 2 } else { 1 }, "{pre:?}");
    }
    // Llama 3 files from before the key existed want a BOS.
    assert_eq!(open(&builder("llama-bpe")).unwrap().add_bos(), Bos::Add);
    let without = builder("llama-bpe").bool("tokenizer.ggml.add_bos_token", false);
    assert_eq!(open(&without).unwrap().add_bos(), Bos::Omit);
    assert_eq!(open(&builder("smollm")).unwrap().add_bos(), Bos::Omit);
}

#[test]
fn a_prefix_space_has_no_place_in_the_text() {
    let tokenizer = open(&builder("gpt-2").bool("tokenizer.ggml.add_space_prefix", true)).unwrap();
    let mut root = small_json("gpt-2");
    root["pre_tokenizer"]["add_prefix_space"] = json!(true);
    let json = from_json(&root).unwrap();
    assert_eq!(tokenizer.fingerprint(), json.fingerprint());
    let pieces = tokenizer.encode("ab ab").unwrap();
    let shown: Vec<_> = pieces.iter().map(|p| (p.id, p.bytes.clone())).collect();
    assert_eq!(shown, [(257, 0..2), (257, 2..5)]);
    let pieces = tokenizer.encode("x").unwrap();
    let shown: Vec<_> = pieces.iter().map(|p| (p.id, p.bytes.clone(), p.chars.clone())).collect();
    assert_eq!(shown, [(u32::from(b' '), 0..0, 0..0), (u32::from(b'x'), 0..1, 0..1)]);
}

#[test]
fn composition_keeps_places_in_the_original() {
    let tokenizer = open(&builder("qwen2")).unwrap();
    // e and acute compose to two bytes; the original has three.
    let text = "ae\u{301}b";
    let pieces = tokenizer.encode(text).unwrap();
    let shown: Vec<_> = pieces.iter().map(|p| (p.id, p.bytes.clone())).collect();
    assert_eq!(shown, [(97, 0..1), (0xC3, 1..2), (0xA9, 2..4), (98, 4..5)]);
    assert_eq!(pieces[1].chars, 1..2);
    assert_eq!(pieces[2].chars, 2..3);
    let plain = open(&builder("gpt-2")).unwrap();
    assert_eq!(plain.encode_ids(text).unwrap(), [97, 101, 0xCC, 0x81, 98]);
}

#[test]
fn bytes_without_a_token_belong_to_a_neighbour() {
    let mut root = small_json("gpt-2");
    root["model"]["vocab"].as_object_mut().unwrap().remove(&letter(4));
    let tokenizer = from_json(&root).unwrap();
    let shown = |text: &str| -> Vec<_> {
        tokenizer.encode(text).unwrap().into_iter().map(|p| (p.id, p.bytes)).collect()
    };
    assert_eq!(shown("\u{4}!"), [(33, 0..2)]);
    assert_eq!(shown("!\u{4}!"), [(33, 0..2), (33, 2..3)]);
    assert_eq!(shown("x\u{4}"), [(120, 0..2)]);
    assert_eq!(shown("\u{4}"), []);
}

#[test]
fn another_expression_goes_through_the_reference_crate() {
    let mut root = json_with(&pre_tokenizer_json("llama-bpe"), &Value::Null, false);
    // Two digits at a time: no family we know by name.
    root["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] =
        json!(r" ?\p{L}+|\p{N}{1,2}|[^\s\p{L}\p{N}]+|\s+");
    let ours = from_json(&root).unwrap();
    let text = "Hello, 12345 wörld <|im_end|>\n👩‍🚀";
    root["added_tokens"] = json!([]);
    let reference = tokenizers::Tokenizer::from_bytes(root.to_string()).unwrap();
    let expected = reference.encode_fast(text, false).unwrap();
    let pieces = ours.encode(text).unwrap();
    assert_eq!(pieces.iter().map(|p| p.id).collect::<Vec<_>>(), expected.get_ids());
    assert_eq!(pieces.first().unwrap().bytes.start, 0);
    assert!(pieces.windows(2).all(|pair| pair[0].bytes.end == pair[1].bytes.start));
    assert_eq!(pieces.last().unwrap().bytes.end, text.len());
    let ids = ours.encode_ids(text).unwrap();
    assert_eq!(ours.decode(&ids), text.as_bytes());
    assert!(ids.iter().all(|id| *id > 16), "{ids:?}");
    // Tokens that share a character have one byte each of it.
    for piece in &pieces {
        assert_eq!(ours.token_bytes(piece.id).unwrap(), &text.as_bytes()[piece.bytes.clone()]);
    }
}

/// A small SentencePiece-like BPE with byte fallback, as Llama 2 has.
fn sentencepiece_json() -> Value {
    let mut vocab = serde_json::Map::new();
    let mut pieces = vec!["<unk>".to_owned(), "<s>".to_owned(), "</s>".to_owned()];
    pieces.extend((0..=255u8).map(|byte| format!("<0x{byte:02X}>")));
    pieces.extend(["▁", "h", "i", "hi", "▁hi", "!"].map(str::to_owned));
    for (id, piece) in pieces.iter().enumerate() {
        vocab.insert(piece.clone(), json!(id));
    }
    let added: Vec<Value> =
        (0..3).map(|id| json!({ "id": id, "content": pieces[id], "special": true })).collect();
    json!({
        "added_tokens": added,
        "normalizer": { "type": "Sequence", "normalizers": [
            { "type": "Prepend", "prepend": "▁" },
            { "type": "Replace", "pattern": { "String": " " }, "content": "▁" }
        ] },
        "pre_tokenizer": null,
        "post_processor": { "type": "TemplateProcessing",
            "single": [ { "SpecialToken": { "id": "<s>", "type_id": 0 } },
                        { "Sequence": { "id": "A", "type_id": 0 } } ],
            "pair": [], "special_tokens": {} },
        "decoder": { "type": "Sequence", "decoders": [
            { "type": "Replace", "pattern": { "String": "▁" }, "content": " " },
            { "type": "ByteFallback" }, { "type": "Fuse" },
            { "type": "Strip", "content": " ", "start": 1, "stop": 0 }
        ] },
        "model": { "type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
                   "vocab": vocab, "merges": ["h i", "▁ hi"] }
    })
}

#[test]
fn sentencepiece_goes_through_the_reference_crate() {
    let tokenizer = from_json(&sentencepiece_json()).unwrap();
    let (space, hi, word, mark) = (259, 262, 263, 264);
    let byte = |b: u8| 3 + u32::from(b);
    assert_eq!(tokenizer.encode_ids("hi hi!").unwrap(), [word, word, mark]);
    assert_eq!(tokenizer.kind(byte(7)), Some(TokenKind::Byte));
    // Control text is plain text: not id 2.
    let ids = tokenizer.encode_ids("</s>").unwrap();
    assert_eq!(ids, [space, byte(b'<'), byte(b'/'), byte(b's'), byte(b'>')]);
    // Byte tokens share a character; each has one byte of it.
    let pieces = tokenizer.encode("hi é").unwrap();
    let shown: Vec<_> = pieces.iter().map(|p| (p.id, p.bytes.clone())).collect();
    assert_eq!(shown, [(word, 0..2), (space, 2..3), (byte(0xC3), 3..4), (byte(0xA9), 4..5)]);
    // The space before the text is not part of it; later ones are.
    assert_eq!(tokenizer.decode(&[1, word, word, byte(0xC3), byte(0xA9), 2]), "hi hié".as_bytes());
    assert_eq!(tokenizer.decode(&[hi, word]), b"hi hi");
    let mut stream = greenmark::text::StreamDecoder::new(&tokenizer);
    let parts: Vec<String> =
        [1, word, word, byte(0xC3), byte(0xA9)].iter().map(|&id| stream.push(id)).collect();
    assert_eq!(parts, ["", "hi", " hi", "", "é"]);
    // The template processor asks for a BOS; encoding text adds none.
    assert_eq!((tokenizer.add_bos(), tokenizer.bos_id()), (Bos::Add, Some(1)));
    assert_eq!(tokenizer.prompt_ids("hi").unwrap(), [1, word]);
    assert_eq!(tokenizer.eos_ids(), [2]);
}

#[test]
fn a_unigram_vocabulary_never_gives_control_tokens() {
    let root = json!({
        "added_tokens": [ { "id": 1, "content": "</s>", "special": true } ],
        "normalizer": null,
        "pre_tokenizer": { "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always",
                           "split": true },
        "post_processor": null,
        "decoder": { "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always",
                     "split": true },
        "model": { "type": "Unigram", "unk_id": 0, "byte_fallback": false, "vocab": [
            ["<unk>", 0.0], ["</s>", 0.0], ["▁", -2.0], ["<", -3.0], ["/", -3.0], ["s", -3.0],
            [">", -3.0], ["▁s", -2.5]
        ] }
    });
    let tokenizer = from_json(&root).unwrap();
    assert_eq!(tokenizer.encode_ids("</s>").unwrap(), [2, 3, 4, 5, 6]);
    assert_eq!(tokenizer.encode_ids("s s").unwrap(), [7, 7]);
    assert_eq!(tokenizer.decode(&[7, 7, 1]), b"s s");
    // Another score is another tokenizer.
    let mut other = root;
    other["model"]["vocab"][7][1] = json!(-2.6);
    assert_ne!(from_json(&other).unwrap().fingerprint(), tokenizer.fingerprint());
}

proptest! {
    #[test]
    fn damaged_files_are_answered_without_panic(
        which in 0usize..3,
        at in any::<proptest::sample::Index>(),
        with in prop_oneof![
            Just("null"), Just("[]"), Just("{}"), Just("-1"), Just("1e9"), Just("\"\""),
            Just("true"), Just("x"), Just(""),
        ],
    ) {
        let text = match which {
            0 => small_json("llama-bpe").to_string(),
            1 => small_json("smollm").to_string(),
            _ => sentencepiece_json().to_string(),
        };
        // Some value of the file becomes another.
        let starts: Vec<usize> =
            text.match_indices([':', ',', '[']).map(|(at, _)| at + 1).collect();
        let start = starts[at.index(starts.len())];
        let end = text[start..].find([',', ']', '}']).map_or(text.len(), |end| start + end);
        let damaged = format!("{}{with}{}", &text[..start], &text[end..]);
        if let Ok(tokenizer) = Tokenizer::from_json_bytes(damaged.as_bytes(), "t.json")
            && let Ok(pieces) = tokenizer.encode("hi ab12 <|end|></s> é")
        {
            let ids: Vec<u32> = pieces.iter().map(|piece| piece.id).collect();
            prop_assert!(ids.iter().all(|&id| tokenizer.kind(id).is_some()));
            let _ = tokenizer.decode(&ids);
        }
    }
}

#[test]
fn files_that_are_no_tokenizer_are_named() {
    let refused = |text: &str| Tokenizer::from_json_bytes(text.as_bytes(), "t.json").unwrap_err();
    assert_says(&refused("{"), &["t.json", "not JSON"]);
    assert_says(&refused("[]"), &["`model` is missing"]);
    assert_says(&refused(&"[".repeat(100_000)), &["not JSON"]);
    assert_says(&refused(r#"{"model":{"type":"WordPiece"}}"#), &["WordPiece", "BPE, Unigram"]);
    assert_says(&refused(r#"{"model":{"type":"BPE"}}"#), &["model.vocab"]);
    let id = r#"{"model":{"type":"BPE","vocab":{"a":99999999},"merges":[]}}"#;
    assert_says(&refused(id), &["99999999"]);
    let makes = r#"{"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b"]},
        "pre_tokenizer":null,"decoder":{"type":"ByteLevel"}}"#;
    assert_says(&refused(makes), &["\"a\" \"b\"", "no token"]);
    let twice = r#"{"model":{"type":"BPE","vocab":{"a":1,"b":1},"merges":[]}}"#;
    assert_says(&refused(twice), &["id 1 stands for \"a\" and \"b\""]);

    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Tokenizer::open(folder.path()), Err(Error::Io { .. })));
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, "version https://git-lfs.example/spec/v1\nsize 17\n").unwrap();
    assert_says(&Tokenizer::open(folder.path()).unwrap_err(), &["Git LFS pointer", "17"]);
    std::fs::write(&path, "").unwrap();
    assert_says(&Tokenizer::open(&path).unwrap_err(), &["empty"]);
}
