//! A text held against several profiles: what it pays, and one verdict.

use std::num::NonZeroU64;
use std::sync::Arc;

use greenmark::detect::{
    Alpha, DetectOptions, Look, Report, ReportContext, Verdict, WindowSearch, gather, join,
};
use greenmark::prf::Key;
use greenmark::profile::{Profile, SchemeParameters};
use greenmark::scheme::{Null, Scheme, build};
use greenmark::stats::ln_binomial_upper;
use greenmark::token::TokenSet;

use crate::profile::profile;
use crate::simulate::{Random, evidence, planted};

fn paying_for(profiles: u64) -> DetectOptions {
    DetectOptions { profiles: NonZeroU64::new(profiles).unwrap(), ..DetectOptions::default() }
}

fn scheme(parameters: SchemeParameters, key: u8) -> (Profile, Arc<dyn Scheme>) {
    let profile = profile(parameters, parameters.default_context()).unwrap();
    let scheme = build(&profile, &Key::from_bytes([key; 32])).into();
    (profile, scheme)
}

fn report(looks: &[Look], options: &DetectOptions) -> Report {
    let (profile, scheme) = scheme(SchemeParameters::default(), 1);
    report_of(&profile, &*scheme, looks, options)
}

fn report_of(
    profile: &Profile,
    scheme: &dyn Scheme,
    looks: &[Look],
    options: &DetectOptions,
) -> Report {
    let context = ReportContext {
        profile,
        input_sha256: String::new(),
        warnings: Vec::new(),
        generation: None,
        entropy: None,
    };
    Report::new(scheme, looks, options, context)
}

fn look(normalization: Vec<&'static str>, scores: &[f64]) -> Look {
    let ids = (0..scores.len() as u32).collect();
    Look { normalization, ids, pieces: Vec::new(), evidence: evidence(scores) }
}

/// `green` green tokens among `scored`.
fn counts(green: usize, scored: usize) -> Look {
    let scores: Vec<f64> = (0..scored).map(|i| f64::from(u8::from(i < green))).collect();
    look(Vec::new(), &scores)
}

#[test]
fn every_profile_is_paid_for_by_every_test() {
    let random = &mut Random::new(7);
    let scores = planted(random, Null::Bernoulli(0.5), 400, 80, 0.9);
    let looks = [look(Vec::new(), &scores), look(vec!["nfc"], &scores)];
    for windows in [WindowSearch::Off, WindowSearch::On] {
        let one = report(&looks, &DetectOptions { windows, ..paying_for(1) });
        let five = report(&looks, &DetectOptions { windows, ..paying_for(5) });
        assert_eq!(five.hypotheses, 5 * one.hypotheses);
        assert_eq!(five.tests.len(), one.tests.len());
        let paid = |more: f64, less: f64| assert!((more - less - 5f64.log10()).abs() < 1e-9);
        paid(five.corrected_log10_p, one.corrected_log10_p);
        for (more, less) in five.tests.iter().zip(&one.tests) {
            assert_eq!(more.log10_p, less.log10_p);
            // No corrected p is above 1.
            if less.corrected_log10_p < -1.0 {
                paid(more.corrected_log10_p, less.corrected_log10_p);
            }
        }
        for (more, less) in five.windows.iter().zip(&one.windows) {
            assert_eq!(more.hypotheses, 5 * less.hypotheses);
            paid(more.corrected_log10_p, less.corrected_log10_p);
        }
        assert_eq!(one.windows.len(), if windows == WindowSearch::On { 2 } else { 0 });
        assert!(five.spans.len() <= one.spans.len());
    }
}

#[test]
fn a_share_of_alpha_needs_more_tokens_to_conclude_anything() {
    // Q(4) = 3.167e-5: 2^-15 reaches it alone, 2^-16 twice, 2^-17 four times.
    let verdict =
        |scored, profiles| report(&[counts(scored, scored)], &paying_for(profiles)).verdict;
    assert_eq!(verdict(15, 1), Verdict::Watermarked);
    assert_eq!(verdict(15, 2), Verdict::Insufficient);
    assert_eq!(verdict(16, 2), Verdict::Watermarked);
    assert_eq!(verdict(16, 3), Verdict::Insufficient);
    assert_eq!(verdict(17, 4), Verdict::Watermarked);
    // P(X >= 71) = 1.6e-5 at n = 100 passes alone and not twice.
    let verdict = |profiles| report(&[counts(71, 100)], &paying_for(profiles)).verdict;
    assert_eq!((verdict(1), verdict(2)), (Verdict::Watermarked, Verdict::NotDetected));
}

#[test]
fn the_smallest_corrected_p_of_those_that_can_conclude_decides() {
    let options = paying_for(3);
    let short = report(&[counts(15, 15)], &options);
    let nothing = report(&[counts(50, 100)], &options);
    let marked = report(&[counts(90, 100)], &options);
    let strongest = report(&[counts(95, 100)], &options);
    assert_eq!(short.verdict, Verdict::Insufficient);
    assert!(short.corrected_log10_p < nothing.corrected_log10_p);
    let joined = |reports: &[&Report]| {
        let reports: Vec<Report> = reports.iter().map(|&report| report.clone()).collect();
        let joined = join(&reports).unwrap();
        let report = &reports[joined.deciding];
        assert_eq!(joined.verdict, report.verdict);
        assert_eq!(joined.corrected_log10_p, report.corrected_log10_p);
        assert_eq!((joined.hypotheses, joined.alpha), (3, Alpha::default().value()));
        (joined.verdict, joined.deciding)
    };
    assert_eq!(joined(&[&nothing, &marked, &strongest]), (Verdict::Watermarked, 2));
    assert_eq!(joined(&[&short, &nothing, &marked]), (Verdict::Watermarked, 2));
    assert_eq!(joined(&[&short, &nothing, &nothing]), (Verdict::NotDetected, 1));
    assert_eq!(joined(&[&short, &short, &short]), (Verdict::Insufficient, 0));
    assert_eq!(join(&[]), None);
}

/// How many of `texts` unmarked texts any of `keys` profiles flags at `alpha`, when each report
/// pays for `paid` profiles.
fn flagged(keys: u8, paid: u64, alpha: f64, windows: WindowSearch, texts: u64) -> u64 {
    let options = DetectOptions { alpha: Alpha::new(alpha).unwrap(), windows, ..paying_for(paid) };
    // Two schemes, since profiles need not be alike.
    let profiles: Vec<_> = (1..=keys)
        .map(|key| {
            let parameters = if key % 2 == 0 {
                SchemeParameters::Gumbel {}
            } else {
                SchemeParameters::default()
            };
            scheme(parameters, key)
        })
        .collect();
    let vocab = 5000;
    let nobody = TokenSet::empty(vocab);
    (0..texts)
        .filter(|text| {
            let random = &mut Random::new(31_000 + text);
            let ids: Vec<u32> = (0..120).map(|_| random.below(vocab) as u32).collect();
            let reports: Vec<Report> = profiles
                .iter()
                .map(|(profile, scheme)| {
                    let evidence = gather(&**scheme, &nobody, &[], &ids);
                    let look = Look {
                        normalization: Vec::new(),
                        ids: ids.clone(),
                        pieces: Vec::new(),
                        evidence,
                    };
                    report_of(profile, &**scheme, &[look], &options)
                })
                .collect();
            join(&reports).unwrap().verdict == Verdict::Watermarked
        })
        .count() as u64
}

#[test]
fn of_unmarked_texts_any_profile_flags_at_most_a_share_alpha() {
    let alpha = 0.05;
    for (windows, texts) in [(WindowSearch::Off, 4000), (WindowSearch::On, 400)] {
        let found = flagged(5, 5, alpha, windows, texts);
        println!("{windows:?}: {found} of {texts} unmarked texts flagged by any of 5 profiles");
        // Above the 99.9% quantile of Binomial(texts, alpha) the tail is below 0.1%.
        let tail = ln_binomial_upper(texts, found, alpha).exp();
        assert!(tail > 0.001, "{windows:?}: {found} of {texts} unmarked texts");
    }
    // The check can fail: without paying five profiles flag far more.
    let texts = 1000;
    let found = flagged(5, 1, alpha, WindowSearch::Off, texts);
    assert!(ln_binomial_upper(texts, found, alpha).exp() < 1e-6, "{found} of {texts}");
}
