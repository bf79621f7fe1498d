//! Verdicts and the form of the report.

use std::num::NonZeroU64;
use std::sync::Arc;

use greenmark::detect::{
    Alpha, DetectOptions, Evidence, Look, Outcome, Report, ReportContext, Skipped, TokenDetails,
    Verdict, WindowSearch, gather,
};
use greenmark::prf::Key;
use greenmark::profile::{Profile, SchemeParameters};
use greenmark::scheme::{Scheme, build};
use greenmark::token::TokenSet;

use crate::profile::profile;

fn setting(scheme: SchemeParameters) -> (Profile, Arc<dyn Scheme>) {
    let profile = profile(scheme, scheme.default_context()).unwrap();
    let scheme = build(&profile, &Key::from_bytes([1; 32])).into();
    (profile, scheme)
}

/// `green` green tokens among `scored`, without tokens behind them.
fn evidence(green: usize, scored: usize) -> Evidence {
    Evidence {
        outcomes: (0..scored).map(|i| Outcome::Scored(f64::from(u8::from(i < green)))).collect(),
        scored: scored as u64,
        raw: scored as u64,
        sum: green as f64,
        raw_sum: green as f64,
        skipped: Skipped::default(),
    }
}

fn report_of(looks: &[Look], options: &DetectOptions) -> Report {
    let (profile, scheme) = setting(SchemeParameters::default());
    let context = ReportContext {
        profile: &profile,
        input_sha256: "00".into(),
        warnings: Vec::new(),
        generation: None,
        entropy: None,
    };
    Report::new(&*scheme, looks, options, context)
}

fn look_at(normalization: Vec<&'static str>, ids: Vec<u32>, evidence: Evidence) -> Look {
    Look { normalization, ids, pieces: Vec::new(), evidence }
}

fn look(green: usize, scored: usize) -> Look {
    look_at(Vec::new(), (0..scored as u32).collect(), evidence(green, scored))
}

#[test]
fn verdicts_follow_the_exact_tail() {
    let options = DetectOptions::default();
    let verdict = |green, scored| report_of(&[look(green, scored)], &options).verdict;
    // Q(4) = 3.167e-5; 2^-14 = 6.1e-5 and 2^-15 = 3.05e-5.
    assert_eq!(verdict(14, 14), Verdict::Insufficient);
    assert_eq!(verdict(15, 15), Verdict::Watermarked);
    assert_eq!(verdict(0, 0), Verdict::Insufficient);
    // P(X >= 71) = 1.6e-5 and P(X >= 70) = 3.9e-5 at n = 100.
    assert_eq!(verdict(71, 100), Verdict::Watermarked);
    assert_eq!(verdict(70, 100), Verdict::NotDetected);
    assert_eq!(verdict(0, 100), Verdict::NotDetected);
}

#[test]
fn w12_an_explicit_threshold_of_zero_is_honoured() {
    // 60 of 100 has z = 2.
    let report = report_of(
        &[look(60, 100)],
        &DetectOptions { alpha: Alpha::from_z(0.0).unwrap(), ..DetectOptions::default() },
    );
    assert_eq!(report.z, Some(2.0));
    assert_eq!(report.alpha, 0.5);
    assert_eq!(report.verdict, Verdict::Watermarked);
    assert_eq!(
        report_of(&[look(60, 100)], &DetectOptions::default()).verdict,
        Verdict::NotDetected
    );
}

#[test]
fn thresholds_outside_their_range_are_refused() {
    for bad in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(Alpha::new(bad).is_err());
    }
    for bad in [f64::NAN, f64::INFINITY, 38.0] {
        assert!(Alpha::from_z(bad).is_err());
    }
    assert!((Alpha::default().value() / 3.167e-5 - 1.0).abs() < 1e-4);
}

#[test]
fn below_min_scored_is_insufficient_whatever_it_shows() {
    let options = DetectOptions { min_scored: 50, ..DetectOptions::default() };
    assert_eq!(report_of(&[look(49, 49)], &options).verdict, Verdict::Insufficient);
    assert_eq!(report_of(&[look(50, 50)], &options).verdict, Verdict::Watermarked);
}

#[test]
fn a_short_text_says_how_many_tokens_a_conclusion_needs() {
    let needed = |looks: &[Look], options: &DetectOptions| report_of(looks, options).needed;
    let plain = DetectOptions::default();
    // Q(4) = 3.167e-5 lies between 2^-15 and 2^-14.
    assert_eq!(needed(&[look(0, 14)], &plain), Some(15));
    assert_eq!(needed(&[look(0, 0)], &plain), Some(15));
    assert_eq!(needed(&[look(15, 15)], &plain), None);
    assert_eq!(needed(&[look(0, 15)], &plain), None);
    // Two looks, two families and three profiles: 12 x 2^-19 = 2.3e-5, and 12 x 2^-18 = 4.6e-5.
    let looks = [look(0, 18), look_at(vec!["newlines"], Vec::new(), evidence(0, 3))];
    let profiles = NonZeroU64::new(3).unwrap();
    let options = DetectOptions { windows: WindowSearch::On, profiles, ..plain };
    assert_eq!(needed(&looks, &options), Some(19));
    // What is asked for can be more, and can be all that is missing.
    let options = DetectOptions { min_scored: 50, ..plain };
    assert_eq!(needed(&[look(49, 49)], &options), Some(50));
    let json = serde_json::to_value(report_of(&[look(0, 14)], &plain)).unwrap();
    assert_eq!(json["needed"], 15);
}

#[test]
fn a_second_look_is_paid_for() {
    // P(X >= 71) = 1.608e-5 alone passes 3.167e-5, twice that does not.
    let normalized = look_at(vec!["newlines"], (0..100).collect(), evidence(71, 100));
    let report = report_of(&[look(50, 100), normalized], &DetectOptions::default());
    assert_eq!(report.hypotheses, 2);
    assert_eq!(report.green, Some(71));
    assert!((report.corrected_log10_p - report.log10_p - 2f64.log10()).abs() < 1e-12);
    assert_eq!(report.verdict, Verdict::NotDetected);
    assert_eq!(report.tests[1].normalization, "newlines");
}

#[test]
fn a_look_that_can_conclude_nothing_does_not_decide() {
    // 14 of 14 cannot reach alpha after two looks; the other look is long and shows nothing.
    let report = report_of(&[look(50, 100), look(14, 14)], &DetectOptions::default());
    assert_eq!((report.verdict, report.scored), (Verdict::NotDetected, 100));
    let report = report_of(&[look(14, 14), look(10, 12)], &DetectOptions::default());
    assert_eq!((report.verdict, report.scored), (Verdict::Insufficient, 14));
    let options = DetectOptions { min_scored: 50, ..DetectOptions::default() };
    let report = report_of(&[look(49, 49), look(58, 60)], &options);
    assert_eq!((report.verdict, report.scored), (Verdict::Watermarked, 60));
}

#[test]
fn w11_five_thousand_green_tokens_have_a_finite_logarithm_and_a_status() {
    let report = report_of(&[look(5000, 5000)], &DetectOptions::default());
    let json = serde_json::to_value(&report).unwrap();
    assert!((json["log10_p"].as_f64().unwrap() + 1_505.149_978_3).abs() < 1e-6);
    assert!((json["z"].as_f64().unwrap() - 70.71).abs() < 0.01);
    assert!(json["p_value"].is_null());
    assert_eq!(json["p_status"], "underflow");
    assert_eq!(json["verdict"], "watermarked");
}

#[test]
fn nothing_scored_is_said_without_a_bare_null() {
    let json = serde_json::to_value(report_of(&[look(0, 0)], &DetectOptions::default())).unwrap();
    assert!(json["z"].is_null());
    assert_eq!(json["z_status"], "nothing_scored");
    assert_eq!(json["p_value"], 1.0);
    assert_eq!(json["log10_p"], 0.0);
    assert!(json.get("green_fraction").is_none());
}

#[test]
fn the_fields_are_the_contract_in_order() {
    let (profile, scheme) = setting(SchemeParameters::default());
    let ids: Vec<u32> = (0..30).map(|i| i * 31 % 17).collect();
    let evidence = gather(&*scheme, &TokenSet::empty(100), &[], &ids);
    let report = Report::new(
        &*scheme,
        &[look_at(Vec::new(), ids, evidence)],
        &DetectOptions { details: TokenDetails::Include, ..DetectOptions::default() },
        ReportContext {
            profile: &profile,
            input_sha256: "ab".into(),
            warnings: Vec::new(),
            generation: Some(serde_json::json!({"temperature": 1.0})),
            entropy: None,
        },
    );
    let json = serde_json::to_value(&report).unwrap();
    let fields: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "schema",
            "verdict",
            "z",
            "p_value",
            "log10_p",
            "corrected_log10_p",
            "hypotheses",
            "alpha",
            "tokens",
            "scored",
            "green",
            "green_fraction",
            "gamma",
            "skipped",
            "tests",
            "windows",
            "spans",
            "token_details",
            "profile",
            "key_id",
            "key_fingerprint",
            "tokenizer",
            "input_sha256",
            "warnings",
            "generation",
            "version"
        ]
    );
    assert_eq!(json["skipped"].as_object().unwrap().len(), 5);
    let details = json["token_details"].as_array().unwrap();
    assert_eq!(details.len(), 30);
    let green = details.iter().filter(|token| token["colour"] == "green").count();
    assert_eq!(json["green"], green);
    assert_eq!(details[0]["skipped"], "prefix");
    // 30 tokens of a sequence with period 17: 17 distinct pairs, the rest repeats.
    assert_eq!(
        (json["scored"].as_u64(), json["skipped"]["repeated"].as_u64()),
        (Some(17), Some(12))
    );
}

#[test]
fn a_sum_scheme_reports_a_sum() {
    let (profile, scheme) = setting(SchemeParameters::Gumbel {});
    let ids: Vec<u32> = (0..64).collect();
    let evidence = gather(&*scheme, &TokenSet::empty(100), &[], &ids);
    let context = ReportContext {
        profile: &profile,
        input_sha256: "ab".into(),
        warnings: Vec::new(),
        generation: None,
        entropy: None,
    };
    let looks = [look_at(Vec::new(), ids, evidence)];
    let options = DetectOptions::default();
    let report = Report::new(&*scheme, &looks, &options, context.clone());
    // A sum of scores has no length at which it first could reach alpha.
    let short = Report::new(&*scheme, &[look(0, 0)], &options, context);
    let json = serde_json::to_value(&report).unwrap();
    assert!(json.get("green").is_none() && json.get("gamma").is_none());
    assert_eq!(json["scored"], 60);
    assert_eq!(json["tests"][0]["evidence"]["kind"], "sum");
    assert_eq!(json["tests"][0]["evidence"]["variance"], 60.0);
    assert!(short.verdict == Verdict::Insufficient && short.needed.is_none());
}
