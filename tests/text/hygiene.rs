//! A marked text of the default model, disguised, and its report before and after normalisation.

use greenmark::detect::{DetectOptions, Report, Verdict};
use greenmark::document::{Circumstances, Detector, identify};
use greenmark::prf::Key;
use greenmark::profile::{KeyIdentity, Profile, SchemeParameters};
use greenmark::text::{Normalizer, Tokenizer};

use crate::support::default_model;

/// 220 tokens of SmolLM2 under the key 00 01 .. 1f with the default profile: `wm generate
/// --temperature 0.8 --seed 12 --max-tokens 220 "Tomatoes grow best in full sun, and a gardener who
/// starts them early"`.
const MARKED: &str = include_str!("marked.txt");

fn detector() -> Detector {
    let tokenizer = Tokenizer::open(default_model()).unwrap();
    let bytes: Vec<u8> = (0..32).collect();
    let key = Key::from_bytes(bytes.try_into().unwrap());
    let scheme = SchemeParameters::default();
    let identity = KeyIdentity { id: "test".to_owned(), fingerprint: key.fingerprint() };
    let profile =
        Profile::new(scheme, scheme.default_context(), identify(&tokenizer), identity).unwrap();
    Detector::new(tokenizer.into(), profile, &key, DetectOptions::default()).unwrap()
}

fn look(detector: &Detector, text: &str, normalizers: &[Normalizer]) -> Report {
    detector.text(text, &Circumstances { normalizers, ..Circumstances::default() }).unwrap()
}

fn hidden_by_zero_width(text: &str) -> String {
    let mut hidden = String::new();
    for (index, letter) in text.chars().enumerate() {
        hidden.push(letter);
        if index % 3 == 2 {
            hidden.push('\u{200b}');
        }
    }
    hidden
}

#[test]
fn w26_a_disguised_mark_is_found_after_normalisation() {
    let detector = detector();
    let original = look(&detector, MARKED, &[]);
    assert_eq!((original.green, original.scored), (Some(111), 151));
    let look_alikes = |text: &str| text.replace('e', "\u{435}");
    let full_width = |text: &str| -> String {
        text.chars()
            .map(|c| match c {
                '!'..='~' => char::from_u32(u32::from(c) + 0xfee0).unwrap(),
                other => other,
            })
            .collect()
    };
    for disguised in [
        hidden_by_zero_width(MARKED),
        look_alikes(&hidden_by_zero_width(MARKED)),
        full_width(MARKED),
        hidden_by_zero_width(&full_width(MARKED)),
    ] {
        let plain = look(&detector, &disguised, &[]);
        assert_eq!(plain.verdict, Verdict::NotDetected, "z {:?}", plain.z);
        let normalizers = [Normalizer::ZeroWidth, Normalizer::Confusables];
        let both = look(&detector, &disguised, &normalizers);
        assert_eq!(both.verdict, Verdict::Watermarked);
        assert_eq!(both.tests[0].z, plain.z, "the text as given is reported too");
        assert_eq!(both.z, original.z);
        // Two looks are paid for.
        assert_eq!(both.hypotheses, 2);
        let paid = both.log10_p + std::f64::consts::LOG10_2;
        assert!((both.corrected_log10_p - paid).abs() < 1e-12);
        // The warning is there either way and says what was done about it.
        assert_eq!(
            plain.warnings.iter().map(|warning| warning.code).collect::<Vec<_>>(),
            both.warnings.iter().map(|warning| warning.code).collect::<Vec<_>>()
        );
        let remedies = [(&plain, "takes a second look"), (&both, "the second look is without")];
        for (report, remedy) in remedies {
            assert!(!report.warnings.is_empty());
            assert!(report.warnings.iter().all(|warning| warning.text.contains(remedy)));
        }
    }
}

#[test]
fn t06_windows_line_ends_cost_nothing_after_newlines() {
    let detector = detector();
    let lines = MARKED.replace(". ", ".\n");
    let original = look(&detector, &lines, &[]);
    for ends in ["\r\n", "\r"] {
        let text = lines.replace('\n', ends);
        let dos = look(&detector, &text, &[Normalizer::Newlines]);
        assert_eq!(dos.tests[1].z, original.z);
        assert_eq!(dos.tests[0].z, look(&detector, &text, &[]).z);
        assert_eq!(dos.warnings[0].code, "crlf");
        let count = format!("{} line ends", lines.matches('\n').count());
        assert!(dos.warnings[0].text.starts_with(&count), "{}", dos.warnings[0].text);
    }
}

#[test]
fn every_warning_has_its_code_and_count() {
    let detector = detector();
    let text =
        "\u{feff}a\r\nb\u{200b}c pаy x\u{a0}y e\u{301} \u{7}\u{feff}\u{fe00}\u{fe01}\u{fe02}";
    let report = look(&detector, text, &[]);
    let found: Vec<(&str, &str)> = report
        .warnings
        .iter()
        .map(|warning| (warning.code, warning.text.split(' ').next().unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            ("bom", "a"),
            ("crlf", "1"),
            ("zero_width", "1"),
            ("confusables", "1"),
            ("unusual_spaces", "1"),
            ("variation_selectors", "3"),
            ("not_nfc", "1"),
            ("control_characters", "1"),
        ]
    );
    assert!(look(&detector, "An honest text.", &[]).warnings.is_empty());
}

#[test]
fn tokens_of_the_second_look_lie_in_the_original() {
    let detector = detector();
    let disguised = hidden_by_zero_width("Tomatoes grow well.").replace('e', "\u{435}");
    let changed = greenmark::text::normalize(&disguised, &Normalizer::ALL);
    let mut last = 0;
    for piece in detector.tokenizer().encode(changed.text()).unwrap() {
        let range = changed.original_range(piece.bytes);
        assert_eq!(range.start, last);
        last = range.end;
    }
    assert_eq!(last, disguised.len());
}
