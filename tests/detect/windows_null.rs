//! What a window pays: validity of the corrected p on unmarked sequences.

use greenmark::detect::windows::{Correction, Scores, WindowNull};
use greenmark::scheme::Null;
use greenmark::stats::{LogProbability, ln_binomial_upper, normal_upper};

use crate::simulate::{Exhaustive, Random};

fn ln(p: f64) -> LogProbability {
    LogProbability::from_ln(p.ln())
}

#[test]
fn w31_two_hundred_tokens_have_20100_windows_and_a_best_z_of_4_5_is_no_detection() {
    let windows = WindowNull::new(Null::Bernoulli(0.5), 200, 1);
    assert_eq!(windows.count(), 20_100);
    let p = ln(normal_upper(4.5));
    // 20,100 Q(4.5) = 0.0683: the number of windows times p.
    assert!((p.corrected(windows.count()).ln().exp() - 0.0683).abs() < 1e-4);
    let (corrected, correction) = windows.corrected(p);
    let corrected = corrected.ln().exp();
    assert_eq!(correction, Correction::FirstPassage);
    assert!(corrected <= 0.068 && corrected > 3.167e-5, "{corrected}");
    println!("W31: corrected p {corrected:.3e} by first passage, 6.83e-2 by the union bound");
}

/// Counts unmarked sequences whose best window has a corrected p of at most 1%; the search is at
/// most as good as the scan, so what holds here holds for any search.
fn share_below_one_percent(null: Null, length: usize, texts: u64, shortest: usize) {
    let windows = WindowNull::new(null, length, shortest);
    let mut below = 0;
    for seed in 0..texts {
        let random = &mut Random::new(1_000_000 + seed);
        let scores = Scores::of(null, (0..length).map(|_| random.score(null)));
        let best = scores.best(shortest);
        below += u64::from(
            best.is_some_and(|window| windows.corrected(window.p).0.ln() <= 0.01_f64.ln()),
        );
    }
    println!(
        "{null:?} T {length}, windows from {shortest}: {below} of {texts} at corrected p <= .01"
    );
    // Above the 99.9% quantile of Binomial(texts, 1%) the tail is below 0.1%.
    let tail = ln_binomial_upper(texts, below, 0.01).exp();
    assert!(tail > 0.001, "{below} of {texts} unmarked texts have a corrected p of at most 1%");
}

#[test]
fn at_most_one_percent_of_unmarked_texts_have_a_corrected_p_of_one_percent() {
    share_below_one_percent(Null::Bernoulli(0.5), 200, 3000, 1);
    share_below_one_percent(Null::Bernoulli(0.25), 200, 3000, 1);
    share_below_one_percent(Null::Bernoulli(0.5), 600, 1000, 20);
    share_below_one_percent(Null::Exponential, 100, 1000, 1);
}

#[test]
#[ignore = "long: tools/check-stats"]
fn at_most_one_percent_of_a_hundred_thousand_unmarked_texts_do() {
    share_below_one_percent(Null::Bernoulli(0.5), 200, 100_000, 1);
    share_below_one_percent(Null::Bernoulli(0.25), 600, 100_000, 1);
    share_below_one_percent(Null::Exponential, 200, 100_000, 1);
}

#[test]
fn the_bounds_hold_for_every_sequence_of_12_tokens() {
    for (rate, shortest) in [(0.5, 1), (0.25, 1), (0.8, 1), (0.5, 4), (0.25, 3)] {
        let null = Null::Bernoulli(rate);
        let exhaustive = Exhaustive::new(null, 12);
        // The exact distribution of the smallest p, over all 4,096 sequences.
        let mut smallest: Vec<(f64, f64)> = (0..4096_u32)
            .map(|bits| {
                let scores: Vec<f64> = (0..12).map(|i| f64::from(bits >> i & 1)).collect();
                let green = f64::from(bits.count_ones());
                let chance = rate.powf(green) * (1.0 - rate).powf(12.0 - green);
                (exhaustive.best(&scores, shortest), chance)
            })
            .collect();
        smallest.sort_by(|a, b| a.0.total_cmp(&b.0));
        let windows = WindowNull::new(null, 12, shortest);
        let mut exact = 0.0;
        let mut sharpest = f64::INFINITY;
        for (i, &(p, chance)) in smallest.iter().enumerate() {
            exact += chance;
            if smallest.get(i + 1).is_some_and(|next| next.0 < p + 1e-12) || p > -1e-9 {
                continue;
            }
            let bound = windows.corrected(LogProbability::from_ln(p)).0.ln().exp();
            assert!(bound >= exact * (1.0 - 1e-12), "rate {rate}, p {p}: {bound} < {exact}");
            sharpest = sharpest.min(bound / exact);
        }
        // All twelve green: one window alone, and the bound is the truth.
        assert!(sharpest < 1.0 + 1e-6, "{sharpest}");
    }
}

#[test]
fn the_bound_of_two_sums_has_a_closed_form() {
    // Walks from the second score pass with chance t, from the first with t + b1 e^-b2.
    for t in [0.1_f64, 1e-3, 1e-9, 1e-40] {
        let b1 = -t.ln();
        let mut b2 = b1;
        for _ in 0..200 {
            b2 = b1 + b2.ln_1p();
        }
        let exact = 2.0 * t + b1 * (-b2).exp();
        let (bound, correction) = WindowNull::new(Null::Exponential, 2, 1).corrected(ln(t));
        assert!((bound.ln().exp() / exact - 1.0).abs() < 1e-6, "{t}: {} {exact}", bound.ln().exp());
        assert_eq!(correction, Correction::FirstPassage);
        let one = WindowNull::new(Null::Exponential, 1, 1).corrected(ln(t)).0.ln().exp();
        assert!((one / t - 1.0).abs() < 1e-6);
    }
}

#[test]
fn the_corrected_p_grows_with_p_and_with_the_text_and_is_never_below_p() {
    for null in [Null::Bernoulli(0.5), Null::Bernoulli(0.25), Null::Exponential] {
        for length in [1, 2, 30, 200, 600] {
            let windows = WindowNull::new(null, length, 1);
            let mut last = f64::NEG_INFINITY;
            for exponent in (1..=590).rev().step_by(9) {
                let p = LogProbability::from_ln(-f64::from(exponent));
                let corrected = windows.corrected(p).0;
                let longer = WindowNull::new(null, length + 1, 1).corrected(p).0;
                assert!(
                    corrected.ln() >= last && corrected <= longer,
                    "{null:?} {length} {p:?}: {last} {corrected:?} {longer:?}"
                );
                assert!(corrected <= p.corrected(windows.count()));
                assert!(corrected >= p);
                last = corrected.ln();
            }
            assert_eq!(windows.corrected(LogProbability::ONE).0, LogProbability::ONE);
        }
    }
}

#[test]
fn long_texts_and_rare_windows_fall_back_to_the_union_bound() {
    for (null, length) in [(Null::Bernoulli(0.5), 20_001), (Null::Exponential, 5_001)] {
        let windows = WindowNull::new(null, length, 1);
        let (corrected, correction) = windows.corrected(ln(1e-20));
        assert_eq!(correction, Correction::UnionBound);
        assert_eq!(corrected, ln(1e-20).corrected(windows.count()));
    }
    let rare = LogProbability::from_ln(-5000.0);
    let windows = WindowNull::new(Null::Bernoulli(0.5), 8000, 1);
    assert_eq!(windows.corrected(rare).1, Correction::UnionBound);
}

#[test]
fn a_chance_near_one_ends_and_stays_at_most_one() {
    for rate in [0.05, 0.5, 0.95] {
        for shortest in [1, 25] {
            let windows = WindowNull::new(Null::Bernoulli(rate), 400, shortest);
            for p in [0.6, 0.999, 1.0 - 1e-12] {
                let bound = windows.corrected(ln(p)).0.ln().exp();
                assert!(bound >= p * (1.0 - 1e-9), "{rate} {shortest} {p}: {bound}");
            }
        }
    }
}
