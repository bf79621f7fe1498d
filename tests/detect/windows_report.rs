//! Windows in the report: what they pay, which test decides, where the regions stand.

use greenmark::detect::{
    Alpha, Correction, DetectOptions, Look, Report, ReportContext, Skip, Verdict, WindowSearch,
};
use greenmark::detect::{Evidence, Outcome};
use greenmark::prf::Key;
use greenmark::profile::SchemeParameters;
use greenmark::scheme::{Null, build};
use greenmark::token::Piece;

use crate::profile::profile;
use crate::simulate::{Random, evidence, planted};

/// With pieces of three bytes and two characters a token.
fn look(normalization: Vec<&'static str>, evidence: Evidence) -> Look {
    let tokens = evidence.outcomes.len();
    Look {
        normalization,
        ids: (0..tokens as u32).collect(),
        pieces: (0..tokens)
            .map(|i| Piece { id: i as u32, bytes: 3 * i..3 * i + 3, chars: 2 * i..2 * i + 2 })
            .collect(),
        evidence,
    }
}

fn report_under(scheme: SchemeParameters, looks: &[Look], options: &DetectOptions) -> Report {
    let profile = profile(scheme, scheme.default_context()).unwrap();
    let scheme = build(&profile, &Key::from_bytes([1; 32]));
    let context = ReportContext {
        profile: &profile,
        input_sha256: "00".into(),
        warnings: Vec::new(),
        generation: None,
        entropy: None,
    };
    Report::new(&*scheme, looks, options, context)
}

fn report(looks: &[Look]) -> Report {
    report_under(SchemeParameters::default(), looks, &on())
}

fn on() -> DetectOptions {
    DetectOptions { windows: WindowSearch::On, ..DetectOptions::default() }
}

/// 600 scores with 60 green tokens in a row from place 200, the others green every second time.
fn with_a_run() -> Vec<f64> {
    (0..600).map(|i| f64::from(u8::from((200..260).contains(&i) || i % 2 == 0))).collect()
}

/// Red and green by turns: nothing to find.
fn plain(tokens: usize) -> Vec<f64> {
    (0..tokens).map(|i| (i % 2) as f64).collect()
}

#[test]
fn a_window_that_decides_is_a_test_of_its_own() {
    let report = report(&[look(Vec::new(), evidence(&with_a_run()))]);
    assert_eq!(report.verdict, Verdict::Watermarked);
    let names: Vec<&str> = report.tests.iter().map(|test| test.name.as_str()).collect();
    assert_eq!(names, ["green-list", "green-list (best window)"]);
    let [region] = &report.windows[..] else { panic!("one look, one window") };
    assert_eq!((region.tokens, region.scored, region.green), ([200, 261], 61, Some(61)));
    assert_eq!((region.bytes, region.chars), (Some([600, 783]), Some([400, 522])));
    assert_eq!((region.windows, region.hypotheses), (600 * 601 / 2, 600 * 601));
    assert_eq!(region.correction, Correction::FirstPassage);
    assert!((region.log10_p + 61.0 * 2f64.log10()).abs() < 1e-9);
    assert_eq!(report.spans, report.windows);
    // The top level is that test, and pays for all windows and for the other family.
    let window = &report.tests[1];
    assert_eq!((report.log10_p, report.z), (window.log10_p, window.z));
    assert_eq!((report.scored, report.green), (61, Some(61)));
    assert_eq!(report.hypotheses, region.hypotheses);
    assert_eq!(report.corrected_log10_p, region.corrected_log10_p);
    assert!(region.corrected_log10_p > region.log10_p + 2f64.log10());
    assert_eq!(report.tests[0].scored, 600);
    assert!(
        (report.tests[0].corrected_log10_p - report.tests[0].log10_p - 2f64.log10()).abs() < 1e-9
    );
}

#[test]
fn windows_take_half_of_alpha_from_the_whole_text() {
    // P(X >= 71) = 1.608e-5 at n = 100 passes 3.167e-5 alone; spread evenly no window is rarer.
    let spread: Vec<f64> =
        (0..100).map(|i| f64::from(u8::from(i * 71 / 100 != (i + 1) * 71 / 100))).collect();
    let looks = [look(Vec::new(), evidence(&spread))];
    let off = report_under(SchemeParameters::default(), &looks, &DetectOptions::default());
    assert_eq!((off.verdict, off.hypotheses), (Verdict::Watermarked, 1));
    assert!(off.windows.is_empty() && off.spans.is_empty());
    let on = report(&looks);
    assert_eq!((on.verdict, on.hypotheses, on.scored), (Verdict::NotDetected, 2, 100));
    assert_eq!((on.windows.len(), on.spans.len()), (1, 0));
}

#[test]
fn every_look_has_its_window_and_all_are_paid_for() {
    let looks = [
        look(Vec::new(), evidence(&plain(600))),
        look(vec!["newlines", "nfc"], evidence(&with_a_run())),
    ];
    let report = report(&looks);
    let names: Vec<&str> = report.tests.iter().map(|test| test.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "green-list",
            "green-list (newlines+nfc)",
            "green-list (best window)",
            "green-list (newlines+nfc, best window)"
        ]
    );
    assert_eq!(report.hypotheses, 4 * 600 * 601 / 2);
    assert_eq!(report.windows[1].normalization, "newlines+nfc");
    assert_eq!(report.spans.len(), 1, "the spans are those of the look that decides");
    assert_eq!(report.spans[0].normalization, "newlines+nfc");
    // A smallest p over twice as many tests pays twice.
    let alone = report_under(SchemeParameters::default(), &looks[1..], &on());
    let more = report.corrected_log10_p - alone.corrected_log10_p;
    assert!((more - 2f64.log10()).abs() < 1e-9);
}

#[test]
fn regions_begin_and_end_with_scored_tokens() {
    // Every scored token is followed by a repeat and a control token.
    let mut evidence = evidence(&with_a_run());
    evidence.outcomes = evidence
        .outcomes
        .iter()
        .flat_map(|&outcome| {
            [outcome, Outcome::Skipped(Skip::Repeated), Outcome::Skipped(Skip::Special)]
        })
        .collect();
    evidence.raw = 1200;
    let report = report(&[look(Vec::new(), evidence)]);
    let region = &report.spans[0];
    assert_eq!((region.tokens, region.scored), ([600, 781], 61));
    assert_eq!(region.bytes, Some([1800, 2343]));
    // 61 scored and the 60 repeats between them.
    assert_eq!(report.tests[1].raw, 121);
}

#[test]
fn bare_ids_have_regions_without_offsets() {
    let mut look = look(Vec::new(), evidence(&with_a_run()));
    look.pieces.clear();
    let json = serde_json::to_value(report(&[look])).unwrap();
    let span = json["spans"][0].as_object().unwrap();
    assert_eq!(span["tokens"], serde_json::json!([200, 261]));
    assert!(!span.contains_key("bytes") && !span.contains_key("chars"));
    assert_eq!(span["correction"], "first_passage");
}

#[test]
fn too_few_tokens_stay_insufficient() {
    let verdict = |scores: &[f64]| report(&[look(Vec::new(), evidence(scores))]).verdict;
    assert_eq!(verdict(&[]), Verdict::Insufficient);
    assert_eq!(verdict(&[1.0]), Verdict::Insufficient);
    assert_eq!(verdict(&[0.0; 10]), Verdict::Insufficient);
    // 2^-15 = 3.05e-5 reaches alpha, twice that does not; 2^-16 does.
    assert_eq!(verdict(&[1.0; 15]), Verdict::Insufficient);
    assert_eq!(verdict(&[1.0; 16]), Verdict::Watermarked);
    assert_eq!(verdict(&[0.0; 16]), Verdict::NotDetected);
    // Nothing scored.
    let mut nothing = evidence(&[0.0; 5]);
    nothing.outcomes = vec![Outcome::Skipped(Skip::Special); 5];
    (nothing.scored, nothing.raw, nothing.skipped.special) = (0, 0, 5);
    let report = report(&[look(Vec::new(), nothing)]);
    assert_eq!(report.verdict, Verdict::Insufficient);
    assert!(report.windows.is_empty() && report.spans.is_empty());
    assert_eq!(report.tests.len(), 1);
}

#[test]
fn windows_shorter_than_min_scored_are_not_looked_at() {
    let looks = [look(Vec::new(), evidence(&with_a_run()))];
    let options = DetectOptions { min_scored: 100, ..on() };
    let report = report_under(SchemeParameters::default(), &looks, &options);
    assert_eq!(report.windows[0].windows, 501 * 502 / 2);
    assert!(report.windows[0].scored >= 100);
    assert!(report.spans.iter().all(|span| span.scored >= 100));
    let options = DetectOptions { min_scored: 601, ..on() };
    let report = report_under(SchemeParameters::default(), &looks, &options);
    assert_eq!(report.verdict, Verdict::Insufficient);
    assert!(report.windows.is_empty());
}

#[test]
fn w31_a_best_window_of_z_4_5_among_200_tokens_is_no_detection() {
    // Unmarked texts: a best window taken for one test would accuse far more than alpha of them.
    let alpha = Alpha::default().value().log10();
    let mut accused = 0;
    for seed in 0..2000 {
        let scores = planted(&mut Random::new(seed), Null::Bernoulli(0.5), 200, 0, 0.5);
        let report = report(&[look(Vec::new(), evidence(&scores))]);
        let region = &report.windows[0];
        assert_eq!((region.windows, region.hypotheses), (20_100, 40_200));
        accused += u32::from(region.log10_p <= alpha);
        assert_eq!(report.verdict, Verdict::NotDetected);
        assert!(report.spans.is_empty() && region.corrected_log10_p > alpha);
    }
    assert!(accused >= 4, "the fault of the case shows: {accused} of 2000");
}

#[test]
fn sums_have_regions_too() {
    let mut random = Random::new(11);
    let scores = planted(&mut random, Null::Exponential, 400, 60, 4.0);
    let look = look(Vec::new(), evidence(&scores));
    let report = report_under(SchemeParameters::Gumbel {}, &[look], &on());
    assert_eq!(report.verdict, Verdict::Watermarked);
    let region = &report.spans[0];
    assert!(region.green.is_none() && (40..90).contains(&region.scored), "{region:?}");
    assert_eq!(report.tests[1].name, "gumbel (best window)");
    let scored = region.scored as f64;
    assert!((report.tests[1].statistic - scored - region.z * scored.sqrt()).abs() < 1e-9);
}

#[test]
fn on_equal_terms_the_whole_text_decides() {
    let report = report(&[look(Vec::new(), evidence(&plain(100)))]);
    assert_eq!((report.verdict, report.scored), (Verdict::NotDetected, 100));
    assert_eq!(report.corrected_log10_p, 0.0);
}
