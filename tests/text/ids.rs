//! Ids of the default model: the field cases and the comparison with the reference crate.

use greenmark::text::Tokenizer;
use greenmark::token::TokenKind;
use proptest::prelude::*;

use crate::fixtures::{json_with, pair, pre_tokenizer_json, smollm2};

fn ids(text: &str) -> Vec<u32> {
    smollm2().encode_ids(text).unwrap()
}

#[test]
fn t01_decode_then_encode_may_give_other_ids() {
    for (before, after) in [
        (&[294, 11222][..], &[33662][..]),
        (&[704, 5365], &[33662]),
        (&[913, 93, 7789], &[913, 11838]),
    ] {
        let text = smollm2().decode_lossy(before);
        assert_eq!(ids(&text), after, "{text:?}");
    }
    assert_eq!(smollm2().decode(&[294, 11222]), b" hello");
}

#[test]
fn t02_control_token_text_is_plain_text() {
    assert_eq!(ids("<|im_end|>"), [44, 108, 306, 79, 486, 108, 46]);
    assert_eq!(smollm2().control_id("<|im_end|>"), Some(2));
}

#[test]
fn t03_decode_gives_the_exact_bytes() {
    for (tokens, text) in [
        (&[28120, 5728][..], "hello !"),
        (&[12420, 637, 100], "don 't"),
        (&[1539, 637, 7916], "': 'search"),
    ] {
        assert_eq!(ids(text), tokens, "{text:?}");
        assert_eq!(smollm2().decode_lossy(tokens), text);
    }
    for text in [" .5", "a  b", "  a , b .  ", "\t\n x", " n't 's"] {
        assert_eq!(smollm2().decode(&ids(text)), text.as_bytes());
    }
}

#[test]
fn t06_line_ends_are_encoded_as_given() {
    assert_eq!(ids("First line\nSecond line"), [5345, 1761, 198, 12556, 1761]);
    assert_eq!(ids("First line\r\nSecond line"), [5345, 1761, 201, 198, 12556, 1761]);
    assert_eq!(ids("First line\rSecond line"), [5345, 1761, 201, 12556, 1761]);
}

#[test]
fn t07_a_final_newline_is_kept() {
    assert_eq!(ids("Hello\n"), [19556, 198]);
    assert_eq!(ids("Hello"), [19556]);
}

#[test]
fn t08_a_byte_order_mark_is_text_to_the_tokenizer() {
    // Stripping it from files is the reader's part; the tokenizer encodes what it is given.
    assert_eq!(ids("\u{feff}Hello"), [186, 136, 140, 19556]);
}

#[test]
fn t08_a_byte_order_mark_before_tokenizer_json_is_tolerated() {
    let root = json_with(&pre_tokenizer_json("smollm"), &serde_json::Value::Null, false);
    let text = format!("\u{feff}{root}");
    let tokenizer = Tokenizer::from_json_bytes(text.as_bytes(), "tokenizer.json").unwrap();
    assert_eq!(tokenizer.encode_ids("Hello").unwrap(), [19556]);
}

#[test]
fn t14_the_gguf_gives_its_own_pre_tokenizer() {
    assert_eq!(ids("Hello, world!"), [19556, 28, 905, 17]);
    assert_eq!(ids("1234567890"), [33, 34, 35, 36, 37, 38, 39, 40, 41, 32]);
    assert_eq!(ids("x = 10\n"), [104, 446, 216, 33, 32, 198]);
    assert_eq!(ids("In 2024, 15%"), [788, 216, 34, 32, 34, 36, 28, 216, 33, 37, 21]);
}

#[test]
fn w25_white_space_reaches_the_tokenizer() {
    assert_eq!(ids("First line\nSecond line"), [5345, 1761, 198, 12556, 1761]);
}

#[test]
fn t15_rare_scripts_have_the_reference_ids() {
    let family = "\u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467}";
    assert_eq!(
        ids(family),
        [10813, 235, 119, 321, 231, 10813, 235, 119, 321, 231, 10813, 235, 117]
    );
    assert_eq!(ids("\u{a0}"), [15442]);
    assert_eq!(ids("\u{fb01}"), [27141]);

    let marks: String = ('\u{300}'..='\u{36f}').collect();
    let texts = [
        marks.clone(),
        format!("a{marks}b {marks}"),
        "ქართული ენა და დამწერლობა".to_owned(),
        "ภาษาไทยเป็นภาษาที่มีระดับเสียง ๑๒๓๔".to_owned(),
        "👨‍👩‍👧‍👦 👩🏽‍🚀 🏳️‍🌈 🇩🇪 e\u{301}".to_owned(),
        "12 ١٢٣ १२३ ⅷ ½ ²³ ①② 3rd 0x1F 1,000.5".to_owned(),
        "It's I'LL they'Re 'ſ 'ſs '\u{17f} don't'T ''s".to_owned(),
        " \u{85}\u{2028}x \u{a0} y\r\n\r\n  z \u{3000}\t\n w   ".to_owned(),
        "\u{0}\u{4}\u{6}!\u{4}! a\u{13}b \u{4}".to_owned(),
        "\u{41000}\u{e000}\u{10ffff} x\u{40000}y".to_owned(),
    ];
    for name in ["gpt-2", "smollm", "llama-bpe", "qwen2"] {
        let pair = pair(name);
        for text in &texts {
            assert_eq!(
                pair.ours.encode_ids(text).unwrap(),
                pair.reference_ids(text),
                "{name}: {text:?}"
            );
        }
    }
}

#[test]
fn every_character_is_classed_as_in_the_reference() {
    // After a space for the classes, after an apostrophe for contractions under case folding.
    for (name, before) in [("smollm", ' '), ("llama-bpe", '\'')] {
        let pair = pair(name);
        // Planes 4 to 13, 15 and 16 hold no assigned characters: a sample of them is enough.
        let characters: Vec<char> = ('\0'..='\u{3ffff}')
            .chain(('\u{40000}'..=char::MAX).step_by(499))
            .chain('\u{e0000}'..='\u{e0fff}')
            .collect();
        for block in characters.chunks(20_000) {
            let text: String = block.iter().flat_map(|c| [before, *c, 'a']).collect();
            assert_eq!(
                pair.ours.encode_ids(&text).unwrap(),
                pair.reference_ids(&text),
                "{name}: block from {:?}",
                block[0]
            );
        }
    }
}

/// Pieces of text that stress the rules.
fn text() -> impl Strategy<Value = String> {
    let snippet = prop_oneof![
        4 => "[ a-zA-Z]{1,6}",
        2 => proptest::sample::select(vec![
            "'s", "'ll", "'RE", "'ſ", "'", "\r\n", "\n", "\r", "\t", "  ", "   ", " ", "\u{a0}",
            "\u{3000}", "1", "23", "4567", "½", "٣", "!", "...", "?!\n", "é", "e\u{301}", "ǎ\u{323}",
            "한", "각", "👩‍🚀", "語", "<|im_end|>", "<|", "\u{4}", "\u{40000}", "ﬁ", "\u{feff}", "_",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    proptest::collection::vec(snippet, 0..20).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn t15_random_texts_have_the_reference_ids(text in text()) {
        for name in ["gpt-2", "smollm", "llama-bpe", "qwen2"] {
            let pair = pair(name);
            prop_assert_eq!(
                pair.ours.encode_ids(&text).unwrap(),
                pair.reference_ids(&text),
                "{}", name
            );
        }
    }

    #[test]
    fn t15_long_words_have_the_reference_ids(
        text in prop_oneof!["[ab]{50,300}", "[aeinorst]{50,300}", "[=\\-]{50,200}", " {50,200}"],
    ) {
        for name in ["gpt-2", "llama-bpe"] {
            let pair = pair(name);
            prop_assert_eq!(
                pair.ours.encode_ids(&text).unwrap(),
                pair.reference_ids(&text),
                "{}", name
            );
        }
    }

    #[test]
    fn ranges_tile_the_text(text in text()) {
        for name in ["smollm", "qwen2"] {
            let tokenizer = &pair(name).ours;
            let pieces = tokenizer.encode(&text).unwrap();
            let mut at = 0;
            for piece in &pieces {
                prop_assert_eq!(piece.bytes.start, at);
                prop_assert!(piece.bytes.end >= at);
                at = piece.bytes.end;
                // The characters of which a byte belongs to the piece.
                let before = |byte| text.char_indices().take_while(|(i, _)| *i < byte).count();
                let end = before(piece.bytes.end);
                let start = if piece.bytes.is_empty() {
                    end
                } else {
                    before(piece.bytes.start + 1) - 1
                };
                prop_assert_eq!(piece.chars.clone(), start..end);
            }
            let expressible = pieces.is_empty();
            prop_assert_eq!(at, if expressible { 0 } else { text.len() });
            let ids: Vec<u32> = pieces.iter().map(|piece| piece.id).collect();
            prop_assert_eq!(ids, tokenizer.encode_ids(&text).unwrap());
        }
    }

    #[test]
    fn each_piece_holds_its_own_bytes(text in text()) {
        let tokenizer = smollm2();
        let lacking = |c: char| "\u{4}\u{6}\u{13}\u{14}\u{16}\u{1d}".contains(c) || c >= '\u{40000}';
        prop_assume!(!text.chars().any(lacking));
        for piece in tokenizer.encode(&text).unwrap() {
            let bytes = &text.as_bytes()[piece.bytes.clone()];
            prop_assert_eq!(tokenizer.token_bytes(piece.id).unwrap(), bytes);
        }
        let ids = tokenizer.encode_ids(&text).unwrap();
        prop_assert_eq!(tokenizer.decode(&ids), text.as_bytes());
    }

    #[test]
    fn text_never_becomes_a_control_token(text in text()) {
        for name in ["gpt-2", "smollm", "llama-bpe", "qwen2"] {
            for id in pair(name).ours.encode_ids(&text).unwrap() {
                prop_assert_eq!(smollm2().kind(id), Some(TokenKind::Normal));
            }
        }
    }
}

#[test]
fn one_model_has_one_fingerprint() {
    let gguf = smollm2();
    let json = &pair("smollm").ours;
    assert_eq!(gguf.fingerprint(), json.fingerprint());
    assert_eq!(gguf.control_ids(), json.control_ids());
    assert_eq!(gguf.vocab_size(), json.vocab_size());
    // Pinned: profiles and sidecars hold it.
    assert_eq!(
        gguf.fingerprint(),
        "2a37e64347c626970298781656a6296a1559c0a7b841a7ae5ae1cbcc94057145"
    );
    let mut all = std::collections::HashSet::from([gguf.fingerprint().to_owned()]);
    for name in ["gpt-2", "llama-bpe", "qwen2"] {
        assert!(all.insert(pair(name).ours.fingerprint().to_owned()), "{name}");
    }
}

#[test]
fn the_default_tokenizer_knows_its_tokens() {
    let tokenizer = smollm2();
    assert_eq!(tokenizer.vocab_size(), 49152);
    assert_eq!(tokenizer.control_ids(), (0..17).collect::<Vec<u32>>());
    assert_eq!(tokenizer.bos_id(), Some(1));
    assert_eq!(tokenizer.eos_ids(), [2, 0]);
    assert_eq!(tokenizer.add_bos(), greenmark::text::Bos::Omit);
    assert_eq!(tokenizer.prompt_ids("Hello").unwrap(), [19556]);
    assert_eq!(tokenizer.piece_text(28120), Some("hello"));
    assert_eq!(tokenizer.piece_text(33662), Some("Ġhello"));
    assert_eq!(tokenizer.token_bytes(33662), Some(&b" hello"[..]));
    assert_eq!(tokenizer.token_bytes(2), Some(&b""[..]));
    assert_eq!(tokenizer.token_bytes(49152), None);
    assert_eq!(tokenizer.kind(49152), None);
    assert_eq!(tokenizer.kind(16), Some(TokenKind::Control));
    assert_eq!(tokenizer.kind(17), Some(TokenKind::Normal));
    // Control tokens and ids outside the vocabulary add nothing to a text.
    assert_eq!(tokenizer.decode(&[1, 28120, 2, u32::MAX]), b"hello");
}

#[test]
fn threads_share_one_tokenizer() {
    fn shareable<T: Send + Sync>() {}
    shareable::<Tokenizer>();
    shareable::<greenmark::text::PromptTemplate>();
    let text = "Ünïcödé 語 👩‍🚀 and 12 words, shared.".repeat(50);
    let expected = ids(&text);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(ids(&text), expected));
        }
    });
}
