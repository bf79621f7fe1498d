//! Where sentences are, and the tests of each.

use std::num::NonZeroU64;
use std::sync::Arc;

use greenmark::detect::{
    DetectOptions, Evidence, Look, Outcome, Report, SentenceRange, Sentences, Skip, Skipped,
    test_sentences,
};
use greenmark::document::{Circumstances, Detector, identify, sentences};
use greenmark::prf::Key;
use greenmark::profile::{KeyIdentity, Profile, SchemeParameters};
use greenmark::scheme::Null;
use greenmark::stats::ln_binomial_upper;
use greenmark::text::Tokenizer;
use greenmark::token::Piece;
use proptest::prelude::*;

/// A detector of the tiny tokenizer that tests sentences and lists tokens.
pub(crate) fn detector(scheme: SchemeParameters, options: DetectOptions) -> Detector {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/models/tokenizer-300.json");
    let tokenizer = Arc::new(Tokenizer::open(path).unwrap());
    let key = Key::from_bytes([7; 32]);
    let identity = KeyIdentity { id: "team".into(), fingerprint: key.fingerprint() };
    let profile =
        Profile::new(scheme, scheme.default_context(), identify(&tokenizer), identity).unwrap();
    Detector::new(tokenizer, profile, &key, options).unwrap()
}

fn report(text: &str) -> Report {
    let options = DetectOptions { sentences: Sentences::Include, ..DetectOptions::default() };
    detector(SchemeParameters::default(), options).text(text, &Circumstances::default()).unwrap()
}

fn split(text: &str) -> Vec<&str> {
    sentences(text).into_iter().map(|bytes| &text[bytes]).collect()
}

#[test]
fn sentences_are_those_of_the_annex() {
    assert_eq!(split("One. Two!  Three?\n"), ["One.", "Two!", "Three?"]);
    assert_eq!(
        split("It costs 3.14 euros, e.g. here. Yes."),
        ["It costs 3.14 euros, e.g. here.", "Yes."]
    );
    assert_eq!(split("He said “No.” She left."), ["He said “No.”", "She left."]);
    assert_eq!(split("一つ目。二つ目。"), ["一つ目。", "二つ目。"]);
    // The annex knows no abbreviations.
    assert_eq!(split("Dr. Who left."), ["Dr.", "Who left."]);
    assert!(split(" \n\t ").is_empty() && split("").is_empty());
    assert_eq!(split("no end"), ["no end"]);
}

#[test]
fn a_break_that_wraps_a_paragraph_ends_no_sentence() {
    let text = "The keeper climbed the stairs of the tower every\nevening and lit the lamp. In \
                the morning he went down\nagain.\n\nA new paragraph starts here.";
    assert_eq!(
        split(text),
        [
            "The keeper climbed the stairs of the tower every\nevening and lit the lamp.",
            "In the morning he went down\nagain.",
            "A new paragraph starts here."
        ]
    );
    let dos = text.replace('\n', "\r\n");
    assert_eq!(split(&dos).len(), 3);
    // A short line ends where its writer wanted.
    assert_eq!(split("A heading\nThe text begins."), ["A heading", "The text begins."]);
}

#[test]
fn items_and_lines_of_code_stand_for_themselves() {
    let list = "- one item that is long enough to look like a wrapped line\n- two\n1. First. More.\n\
                (a) a letter\n• a bullet";
    assert_eq!(
        split(list),
        [
            "- one item that is long enough to look like a wrapped line",
            "- two",
            "1. First.",
            "More.",
            "(a) a letter",
            "• a bullet"
        ]
    );
    let hanging = "- an item whose words are wrapped behind the marker by\n  an editor.";
    assert_eq!(split(hanging), [hanging]);
    let code = "#!/bin/sh\nparser.add_argument(\"--verbose\", action=\"store_true\")\nparser.parse()\n\
                if (x > 1.0) { return \"A. B\"; }\n";
    assert_eq!(
        split(code),
        [
            "#!/bin/sh",
            "parser.add_argument(\"--verbose\", action=\"store_true\")",
            "parser.parse()",
            "if (x > 1.0) { return \"A. B\"; }"
        ]
    );
    let fenced =
        "```text\nan unmarked line of words inside a fence, long enough\nto look like prose\n```";
    assert_eq!(split(fenced).len(), 4);
}

proptest! {
    #[test]
    fn sentences_hold_every_visible_character_once(text in "[a-zA-Z.!? \n\r\t\"'(){}\\-é。日\u{200b}0-9]{0,200}") {
        let found = sentences(&text);
        let mut from = 0;
        for bytes in &found {
            prop_assert!(text[from..bytes.start].trim().is_empty());
            let sentence = &text[bytes.clone()];
            prop_assert!(!sentence.is_empty() && sentence.trim() == sentence);
            from = bytes.end;
        }
        prop_assert!(text[from..].trim().is_empty());
    }

    #[test]
    fn any_text_can_be_split(text in any::<String>()) {
        for bytes in sentences(&text) {
            prop_assert!(text.get(bytes).is_some());
        }
    }
}

const TEXT: &str = "Der Wächter stieg hinauf. Er zündete 3 Lampen an!\n\nDann schlief er. Dann \
                    schlief er. Und ein letzter Satz ohne Ende";

#[test]
fn every_scored_token_counts_in_one_sentence() {
    let with = report(TEXT);
    let rows = with.sentences.clone().unwrap();
    assert_eq!(rows.len(), 5);
    assert_eq!(rows.iter().map(|row| row.scored).sum::<u64>(), with.scored);
    assert_eq!(rows.iter().map(|row| row.green.unwrap()).sum::<u64>(), with.green.unwrap());
    let mut next = 0;
    for (index, row) in rows.iter().enumerate() {
        assert_eq!((row.index, row.tokens[0]), (index, next));
        next = row.tokens[1];
        let by_chars: String = TEXT.chars().take(row.chars[1]).skip(row.chars[0]).collect();
        assert_eq!(TEXT[row.bytes[0]..row.bytes[1]], by_chars);
    }
    assert_eq!(next as u64, with.tokens);
    // The repeated sentence holds hardly any new evidence.
    assert!(rows[3].scored < rows[2].scored / 2, "{rows:?}");
    // A byte-order mark moves offsets and nothing else.
    let marked = report(&format!("\u{feff}{TEXT}")).sentences.unwrap();
    for (plain, moved) in rows.iter().zip(&marked) {
        assert_eq!(moved.bytes, plain.bytes.map(|byte| byte + 3));
        assert_eq!(moved.chars, plain.chars.map(|character| character + 1));
        assert_eq!((moved.scored, moved.green), (plain.scored, plain.green));
    }
}

#[test]
fn p_is_exact_and_corrected_for_the_sentences_that_were_tested() {
    let with = report(TEXT);
    let rows = with.sentences.clone().unwrap();
    let tested = rows.iter().filter(|row| row.scored > 0).count() as u64;
    for row in &rows {
        assert_eq!(row.hypotheses, tested);
        let ln_p = ln_binomial_upper(row.scored, row.green.unwrap(), 0.5);
        assert!((row.log10_p - ln_p / std::f64::consts::LN_10).abs() < 1e-12);
        let corrected = (row.log10_p + (tested as f64).log10()).min(0.0);
        assert!((row.corrected_log10_p - corrected).abs() < 1e-12);
    }
    // Sentences decide nothing and are paid for by nobody.
    let options = DetectOptions::default();
    let without = detector(SchemeParameters::default(), options)
        .text(TEXT, &Circumstances::default())
        .unwrap();
    assert_eq!(Report { sentences: None, ..with }, without);
}

#[test]
fn a_token_belongs_to_the_sentence_where_it_starts() {
    // "Ab. Cd." in three tokens: "Ab", ". C" (straddles), "d."; and one that is not scored.
    let piece = |bytes: std::ops::Range<usize>| Piece { id: 1, chars: bytes.clone(), bytes };
    let outcomes = vec![
        Outcome::Scored(1.0),
        Outcome::Scored(1.0),
        Outcome::Scored(0.0),
        Outcome::Skipped(Skip::Repeated),
    ];
    let evidence = Evidence {
        outcomes,
        scored: 3,
        raw: 4,
        sum: 2.0,
        raw_sum: 2.0,
        skipped: Skipped::default(),
    };
    let look = Look {
        normalization: Vec::new(),
        ids: vec![1; 4],
        pieces: vec![piece(0..2), piece(2..5), piece(5..7), piece(7..8)],
        evidence,
    };
    let range = |bytes: std::ops::Range<usize>| SentenceRange { chars: bytes.clone(), bytes };
    let rows =
        test_sentences(Null::Bernoulli(0.5), &look, &[range(0..3), range(4..7)], NonZeroU64::MIN);
    let counts: Vec<_> = rows.iter().map(|row| (row.tokens, row.scored, row.green)).collect();
    assert_eq!(counts, [([0, 2], 2, Some(2)), ([2, 4], 1, Some(0))]);
    // All of two green: one in four, times two sentences.
    assert!((rows[0].corrected_log10_p - 0.5f64.log10()).abs() < 1e-12);
    assert_eq!(rows[1].p_value.value(), Some(1.0));
    assert!(test_sentences(Null::Bernoulli(0.5), &look, &[], NonZeroU64::MIN).is_empty());
}
