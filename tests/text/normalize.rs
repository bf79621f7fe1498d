//! Normalisers and the way back to the original.

use greenmark::text::{Normalizer, normalize, survey};
use proptest::prelude::*;

use crate::fixtures::smollm2;

#[test]
fn t06_line_ends_become_lf() {
    let changed = normalize("a\r\nb\rc\n\r\n\r", &[Normalizer::Newlines]);
    assert_eq!(changed.text(), "a\nb\nc\n\n\n");
    // Each line feed comes from the whole line end.
    assert_eq!(changed.original_range(0..1), 0..2);
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
    assert!(changed.is_changed());
    let found = survey(&hidden);
    assert!(found.zero_width >= 10 && found.confusables >= 10, "{found:?}");
    // Every byte of the plain text lies where its character came from.
    for (at, letter) in text.char_indices() {
        let original = &hidden[changed.original_range(at..at + 1)];
        let plain = original.replace('\u{435}', "e").replace('\u{200b}', "");
        assert_eq!(plain, letter.to_string(), "at {at}");
    }
    // Full-width and mathematical forms, and spaces of other widths.
    let styled = "Ｆｕｌｌ！\u{3000}𝐛𝐨𝐥𝐝\u{a0}𝟗";
    assert_eq!(normalize(styled, &[Normalizer::Confusables]).text(), "Full! bold 9");
}

#[test]
fn honest_text_of_other_scripts_is_not_suspicious() {
    for text in [
        "Съешь же ещё этих мягких французских булок",
        "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
        "👩‍👩‍👧 family, 🏳️‍🌈 flag",
        "می‌خواهم",
        "plain ASCII text - with 'quotes'",
        "naïve café",
    ] {
        assert!(survey(text).is_empty(), "{text}: {:?}", survey(text));
    }
    assert_eq!(survey("pаypal and раураl").confusables, 6);
    assert_eq!(survey("x\u{200b}y").zero_width, 1);
}

#[test]
fn names_are_those_of_the_command_line() {
    for normalizer in Normalizer::ALL {
        assert_eq!(Normalizer::parse(normalizer.name()).unwrap(), normalizer);
    }
    let error = Normalizer::parse("nfkc").unwrap_err().to_string();
    assert!(error.contains("nfkc") && error.contains("newlines, zero-width, confusables"));
}

proptest! {
    #[test]
    fn the_way_back_is_monotone_and_exact_where_nothing_changed(
        text in "[aeо\u{200b}\r\n x\u{feff}ｅ]{0,40}",
    ) {
        let same = normalize(&text, &[]);
        prop_assert_eq!(same.text(), &text);
        prop_assert!(!same.is_changed());
        let changed = normalize(&text, &Normalizer::ALL);
        let mut last = 0;
        for at in 0..=changed.text().len() {
            prop_assert_eq!(same.original(at.min(text.len())), at.min(text.len()));
            let original = changed.original(at);
            prop_assert!(original >= last && original <= text.len());
            last = original;
        }
        prop_assert_eq!(changed.original(changed.text().len()), text.len());
        // A kept letter is found at its place.
        for (at, letter) in changed.text().char_indices().filter(|(_, c)| *c == 'x') {
            let range = changed.original_range(at..at + 1);
            prop_assert!(text[range].starts_with(letter));
        }
        // Applied twice, nothing more changes.
        prop_assert!(!normalize(changed.text(), &Normalizer::ALL).is_changed());
    }
}
