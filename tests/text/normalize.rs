//! Each normaliser, what it leaves alone, and the way back to the original.

use greenmark::text::{Normalizer, Survey, normalize, survey};
use proptest::prelude::*;

use crate::fixtures::smollm2;

fn mended(text: &str) -> String {
    normalize(text, &[Normalizer::Confusables]).text().to_owned()
}

fn without_zero_width(text: &str) -> String {
    normalize(text, &[Normalizer::ZeroWidth]).text().to_owned()
}

#[test]
fn t06_line_ends_become_lf() {
    let changed = normalize("a\r\nb\rc\n\r\n\r", &[Normalizer::Newlines]);
    assert_eq!(changed.text(), "a\nb\nc\n\n\n");
    // Each line feed comes from the whole line end.
    assert_eq!(changed.original_range(0..1), 0..1);
    assert_eq!(changed.original_range(1..2), 1..3);
    assert_eq!(changed.original_range(2..3), 3..4);
    assert_eq!(changed.original(changed.text().len()), 10);
    let text = "First line\r\nSecond line\r\n";
    assert_eq!(survey(text).carriage_returns, 2);
    assert_eq!(
        smollm2().encode_ids(normalize(text, &[Normalizer::Newlines]).text()).unwrap(),
        smollm2().encode_ids("First line\nSecond line\n").unwrap()
    );
}

#[test]
fn w25_without_normalisers_the_bytes_are_encoded_as_given() {
    let text = "First line\nSecond line";
    assert_eq!(normalize(text, &[]).text(), text);
    assert_eq!(smollm2().encode_ids(text).unwrap(), [5345, 1761, 198, 12556, 1761]);
    // No normaliser folds spaces or takes line feeds.
    let code = "def f():\n    if x:\n\t\treturn  1\n";
    assert!(!normalize(code, &Normalizer::ALL).is_changed());
}

#[test]
fn w26_zero_width_and_look_alikes_are_undone() {
    let text = "The theremin hummed, eerie yet serene; everyone listened.";
    let mut hidden = String::new();
    for (index, letter) in text.chars().enumerate() {
        hidden.push(letter);
        if index % 3 == 2 {
            hidden.push('\u{200b}');
        }
    }
    let hidden = hidden.replace('e', "\u{435}");
    let changed = normalize(&hidden, &[Normalizer::ZeroWidth, Normalizer::Confusables]);
    assert_eq!(changed.text(), text);
    let found = survey(&hidden);
    assert_eq!((found.zero_width, found.confusables), (19, text.matches('e').count()));
    // Every byte of the plain text lies where its character came from.
    for (at, letter) in text.char_indices() {
        let original = &hidden[changed.original_range(at..at + 1)];
        let plain = original.replace('\u{435}', "e").replace('\u{200b}', "");
        assert_eq!(plain, letter.to_string(), "at {at}");
    }
    // The order of the list is not that of the work.
    let other_way = normalize(&hidden, &[Normalizer::Confusables, Normalizer::ZeroWidth]);
    assert_eq!(other_way, changed);
    // Invisible characters inside a word do not hide its look-alikes.
    assert_eq!(mended(&hidden).replace('\u{200b}', ""), text);
}

#[test]
fn w26_other_forms_and_spaces_become_plain() {
    for (text, plain) in [
        ("Ｆｕｌｌ！\u{3000}ｗｉｄｔｈ", "Full! width"),
        ("𝐛𝐨𝐥𝐝\u{a0}𝟗 𝓼𝓬𝓻𝓲𝓹𝓽 𝕕𝕠𝕦𝕓𝕝𝕖", "bold 9 script double"),
        ("ℎello ℬold Ⓐⓑⓒ 🄰🄱", "hello Bold Abc AB"),
        ("thin\u{2009}no-break\u{202f}ideographic\u{3000}end", "thin no-break ideographic end"),
    ] {
        assert_eq!(mended(text), plain);
    }
    let found = survey("Ｆｕｌｌ a\u{a0}b\u{2003}c");
    assert_eq!((found.confusables, found.unusual_spaces), (4, 2));
}

#[test]
fn look_alikes_are_mended_toward_the_script_of_the_word_or_text() {
    for (text, plain) in [
        // Cyrillic, Greek and Armenian letters in English; capitals stay capitals.
        ("pаypal, pαypal and раураl", "paypal, paypal and paypal"),
        ("ΤΗE Ѕсhооl оf Іdеаѕ, yоս", "THE School of Ideas, you"),
        // Accented and composed letters.
        ("naїve cаfé thё", "naïve café thë"),
        // Most letters exchanged: the text is English all the same.
        ("Тһе ѕсһооӏ оf tһе ѕеа іѕ а рӏасе оf реасе", "The school of the sea is a place of peace"),
        // Latin letters in Russian and in Greek.
        (
            "Cъeшь жe eщё этиx мягкиx фpaнцyзскиx булок",
            "Съешь же ещё этих мягких французских булок",
        ),
        ("Ξεσκεπάζω τηv ψυχoφθόρα βδελυγμία", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία"),
        // A Russian word in an English text is mended toward Russian.
        ("He said пpивeт to all of us", "He said привет to all of us"),
        // Phonetic letters look like Latin ones too.
        ("a ɡood ɑnswer", "a good answer"),
    ] {
        assert_eq!(mended(text), plain);
    }
}

#[test]
fn real_words_of_another_script_stay() {
    for text in [
        "The Russian word сахар means sugar, and хорошо means good",
        "He wrote «Москва», «а», «оса» and «сор» on the board",
        "In Greek αγορά is a market and είναι is to be",
        "α-helix, β-carotene, ρ = 0.5, ν and σ; TNFα, IFNγ, Δt, 5 μm",
        "The set ℝ of reals, ℂ, №, ™, x², 1º, ﬁ",
        "Diyarbakır ılık, weiß, œuvre, ŋ, ɛ, ß, þorn, Ţara",
        "Это CPU, PC и TV по-русски, XP",
        "これはtestです、テスト。ＡＢＣ！　全角",
        "한국어 텍스트와 English",
        "عربي و English",
        "a - b – c — d ‘e’ “f” … 1 l I | 0 O",
    ] {
        assert_eq!(mended(text), text);
    }
    // A wholly look-alike word beside exchanged letters is no quotation, unless it stands in one.
    assert_eq!(mended("thе сору of pеасе"), "the copy of peace");
    assert_eq!(mended("thе quote «оса и сор» stays"), "the quote «оса и сор» stays");
}

#[test]
fn honest_text_is_not_suspicious() {
    for text in [
        "Съешь же ещё этих мягких французских булок",
        "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
        "👩‍👩‍👧 family, 🏳️‍🌈 flag, ❤️ and 👍🏽, 1️⃣, 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
        "می‌خواهم",
        "क्‍ष and क्‌ष",
        "ประเทศ\u{200b}ไทย",
        "שלום \u{200f}(abc)\u{200e} עולם",
        "葛\u{e0100}城",
        "plain ASCII text - with 'quotes'\n\ttab",
        "naïve café",
        "中文，全角！\u{3000}空格",
    ] {
        assert_eq!(survey(text), Survey::default(), "{text}");
        assert!(!normalize(text, &Normalizer::ALL).is_changed(), "{text}");
    }
}

#[test]
fn invisible_characters_without_a_duty_are_deleted() {
    for invisible in [
        '\u{ad}',
        '\u{34f}',
        '\u{61c}',
        '\u{115f}',
        '\u{180e}',
        '\u{200b}',
        '\u{200c}',
        '\u{200d}',
        '\u{200e}',
        '\u{202e}',
        '\u{2060}',
        '\u{2063}',
        '\u{2069}',
        '\u{206f}',
        '\u{3164}',
        '\u{feff}',
        '\u{fffb}',
        '\u{fe0f}',
        '\u{e0100}',
        '\u{e0061}',
        '\u{1d173}',
    ] {
        let text = format!("mar{invisible}ked and нов{invisible}ый");
        assert_eq!(without_zero_width(&text), "marked and новый", "{invisible:?}");
        assert_eq!(survey(&text).zero_width, 2, "{invisible:?}");
    }
    // Invisible characters inside an emoji.
    assert_eq!(without_zero_width("👩\u{200d}\u{200b}👩"), "👩\u{200d}👩");
    // Joiners where nothing joins, few or many.
    let many = format!("👩{}x", "\u{200d}".repeat(300_000));
    assert_eq!(without_zero_width(&many), "👩x");
    assert_eq!(without_zero_width("a\u{200d}👩 b👩\u{200d} c"), "a👩 b👩 c");
    assert_eq!(without_zero_width("\u{200b}\u{200b}x\u{200b}"), "x");
}

/// Bytes as variation selectors, as C2PA writes them.
fn selectors(bytes: &[u8]) -> String {
    let selector = |byte: u8| match u32::from(byte) {
        low @ 0..16 => char::from_u32(0xfe00 + low),
        high => char::from_u32(0xe_0100 + high - 16),
    };
    bytes.iter().map(|&byte| selector(byte).unwrap()).collect()
}

#[test]
fn runs_of_variation_selectors_are_noticed_and_kept() {
    let manifest = selectors(b"C2PATXT\0\x01\0\0\0\x04jumb");
    let text = format!("A signed text.\u{feff}{manifest}");
    assert!(!normalize(&text, &Normalizer::ALL).is_changed());
    let found = survey(&text);
    assert_eq!((found.variation_selectors, found.c2pa_manifests), (17, 1));
    assert_eq!(found, Survey { variation_selectors: 17, c2pa_manifests: 1, ..Survey::default() });
    // Other data, behind a letter: kept, and no manifest.
    let text = format!("hidden{} data", selectors(b"hello"));
    assert!(!normalize(&text, &Normalizer::ALL).is_changed());
    assert_eq!((survey(&text).variation_selectors, survey(&text).c2pa_manifests), (5, 0));
}

#[test]
fn nfc_composes_stretch_by_stretch() {
    let changed = normalize("cafe\u{301}s A\u{30a}ngstro\u{308}m", &[Normalizer::Nfc]);
    assert_eq!(changed.text(), "cafés Ångström");
    assert_eq!(changed.original_range(3..5), 3..6);
    assert_eq!(changed.original_range(0..3), 0..3);
    // An offset inside a composed letter lies at the end of what it was made of.
    assert_eq!(changed.original_range(3..4), 3..6);
    assert_eq!(changed.original_range(4..5), 6..6);
    // Singletons, marks out of order, Hangul.
    for (text, plain) in [
        ("\u{2126}\u{212b}", "\u{3a9}\u{c5}"),
        ("a\u{301}\u{323}", "\u{1ea1}\u{301}"),
        ("\u{1112}\u{1161}\u{11ab}", "\u{d55c}"),
    ] {
        assert_eq!(normalize(text, &[Normalizer::Nfc]).text(), plain);
        assert!(survey(text).not_nfc > 0);
    }
    let long = format!("a{}", "\u{301}".repeat(100_000));
    assert_eq!(normalize(&long, &[Normalizer::Nfc]).text().len(), long.len() - 1);
}

#[test]
fn control_characters_are_counted() {
    assert_eq!(survey("a\0b\u{7}c\u{7f}\u{85}\t\r\n").control_characters, 4);
}

#[test]
fn names_are_those_of_the_command_line() {
    for normalizer in Normalizer::ALL {
        assert_eq!(Normalizer::parse(normalizer.name()).unwrap(), normalizer);
    }
    let error = Normalizer::parse("nfkc").unwrap_err().to_string();
    assert!(error.contains("nfkc") && error.contains("newlines, zero-width, confusables, nfc"));
}

/// Some of the normalisers.
fn subset() -> impl Strategy<Value = Vec<Normalizer>> {
    proptest::sample::subsequence(Normalizer::ALL.to_vec(), 0..=4)
}

proptest! {
    #[test]
    fn the_way_back_is_monotone_and_covers_the_original(
        text in "[aeо\u{200b}\u{200d}\r\n x\u{feff}ｅα\u{301}\u{fe0f}👩\u{4e00}ي]{0,40}",
        wanted in subset(),
    ) {
        let changed = normalize(&text, &wanted);
        prop_assert_eq!(changed.is_changed(), changed.text() != text);
        prop_assert_eq!(changed.original(0), 0);
        // Of a text of which nothing is left there is no end to find.
        if changed.text().is_empty() {
            return Ok(());
        }
        prop_assert_eq!(changed.original(changed.text().len()), text.len());
        let mut last = 0;
        for (at, letter) in changed.text().char_indices() {
            let range = changed.original_range(at..at + letter.len_utf8());
            prop_assert_eq!(range.start, last, "ranges touch");
            prop_assert!(range.end >= range.start);
            prop_assert!(text.is_char_boundary(range.end));
            // Letters that no normaliser touches are found at their place.
            if "x\u{4e00}ي".contains(letter) {
                prop_assert!(text[range.clone()].contains(letter));
            }
            last = range.end;
            // Also between the bytes of a character the map does not fall.
            for inside in at..at + letter.len_utf8() {
                prop_assert!(changed.original(inside) <= changed.original(inside + 1));
            }
        }
        prop_assert_eq!(last, text.len(), "the original is covered");
        if !changed.is_changed() {
            for at in 0..=text.len() {
                prop_assert_eq!(changed.original(at), at);
            }
        }
    }

    #[test]
    fn nothing_is_left_to_normalise_and_nothing_is_counted_then(
        text in "[aebо\u{200b}\u{200d}\r\n xт\u{feff}ｅ\u{301}\u{fe0f}👩\u{a0}]{0,40}",
    ) {
        let changed = normalize(&text, &Normalizer::ALL);
        prop_assert!(!normalize(changed.text(), &Normalizer::ALL).is_changed());
        let left = survey(changed.text());
        prop_assert_eq!(left, Survey {
            variation_selectors: left.variation_selectors, ..Survey::default()
        });
    }

    #[test]
    fn form_c_is_that_of_the_whole_text(text in "[a-e\u{300}-\u{305}\u{323}\u{344}\u{f71}-\u{f73}\u{1100}-\u{1103}\u{1161}-\u{1163}\u{11a8}-\u{11aa}\u{ac00}\u{2126}\u{958}é\u{fb4f}]{0,24}") {
        use unicode_normalization::UnicodeNormalization;
        let whole: String = UnicodeNormalization::nfc(text.as_str()).collect();
        let changed = normalize(&text, &[Normalizer::Nfc]);
        prop_assert_eq!(changed.text(), whole);
    }
}
