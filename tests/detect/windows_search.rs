//! The search against the exhaustive scan.

use greenmark::detect::windows::Scores;
use greenmark::scheme::Null;

use crate::simulate::{Exhaustive, Random, planted};

/// Compares search and scan on `texts` texts of 200 to 600 tokens, half of them with a mark of 20
/// to 120 tokens, and prints how often they differ and by how much.
fn compare(null: Null, strength: f64, texts: u64, shortest: usize) {
    let exhaustive = Exhaustive::new(null, 600);
    let (mut differ, mut worst) = (0, 0.0_f64);
    for seed in 0..texts {
        let random = &mut Random::new(seed);
        let length = 200 + random.below(401);
        let marked = if seed % 2 == 0 { 0 } else { 20 + random.below(101) };
        let scores = planted(random, null, length, marked, strength);
        let exact = exhaustive.best(&scores, shortest);
        let found = Scores::of(null, scores).best(shortest).map_or(0.0, |window| window.p.ln());
        assert!(found >= exact - 1e-9, "the scan is exhaustive");
        differ += u32::from(found > exact + 1e-9);
        worst = worst.max(found - exact);
    }
    println!("{null:?}: {differ} of {texts} differ, at most by a factor of {:.3}", worst.exp());
    assert!(worst <= 3f64.ln(), "{null:?}: a factor of {}", worst.exp());
}

#[test]
fn the_best_p_is_within_a_factor_of_3_of_the_exhaustive_scan() {
    compare(Null::Bernoulli(0.5), 0.75, 1000, 1);
    compare(Null::Bernoulli(0.25), 0.53, 1000, 1);
    compare(Null::Exponential, 2.0, 30, 1);
}

#[test]
fn so_it_is_for_other_rates_strengths_and_shortest_windows() {
    for (rate, strength) in [(0.5, 0.98), (0.25, 1.0), (0.05, 0.2), (0.9, 0.99), (0.01, 0.5)] {
        compare(Null::Bernoulli(rate), strength, 200, 1);
    }
    compare(Null::Bernoulli(0.5), 0.75, 40, 50);
    compare(Null::Exponential, 20.0, 15, 1);
    compare(Null::Exponential, 1.3, 15, 30);
}

#[test]
#[ignore = "long: tools/check-stats"]
fn sums_are_searched_as_well_as_counts() {
    compare(Null::Exponential, 2.0, 1000, 1);
}

#[test]
fn what_holds_no_window_above_chance_has_none() {
    for null in [Null::Bernoulli(0.5), Null::Exponential] {
        assert_eq!(Scores::of(null, []).best(1), None);
        assert_eq!(Scores::of(null, [0.0; 50]).best(1), None);
        assert_eq!(Scores::of(null, [1.0; 20]).best(21), None);
        assert_eq!(Scores::of(null, [0.1]).best(1), None);
    }
    let window = Scores::of(Null::Bernoulli(0.25), [1.0]).best(1).unwrap();
    assert_eq!((window.start, window.end, window.p.ln()), (0, 1, 0.25f64.ln()));
}

#[test]
fn a_planted_run_is_found_with_its_ends() {
    // 40 green among tokens that are green every second time.
    let scores = (0..400).map(|i| f64::from(u8::from((100..140).contains(&i) || i % 2 == 0)));
    let scores = Scores::of(Null::Bernoulli(0.5), scores);
    let window = scores.best(1).unwrap();
    // The run touches the green token at 140.
    assert_eq!((window.start, window.end), (100, 141));
    assert!((window.p.ln() + 41.0 * 2f64.ln()).abs() < 1e-9);
    assert_eq!(scores.regions(window, 1, |w| (w.p.ln() < -20.0).then_some(w)), [window]);
}

#[test]
fn every_disjoint_region_is_found_in_the_order_of_the_text() {
    let marked = |i: usize| [50..90, 300..360, 700..730].iter().any(|run| run.contains(&i));
    let random = &mut Random::new(5);
    let null = Null::Bernoulli(0.5);
    let scores: Vec<f64> =
        (0..900).map(|i| random.green(if marked(i) { 0.97 } else { 0.5 })).collect();
    let scores = Scores::of(null, scores);
    let best = scores.best(1).unwrap();
    let regions = scores.regions(best, 1, |w| (w.p.ln() < -14.0).then_some(w));
    assert_eq!(regions.len(), 3, "{regions:?}");
    for (region, run) in regions.iter().zip([50..90, 300..360, 700..730]) {
        let shared = region.end.min(run.end).saturating_sub(region.start.max(run.start));
        assert!(shared * 10 >= 9 * run.len(), "{region:?} {run:?}");
        assert!(region.scored() < run.len() + 15, "{region:?} {run:?}");
    }
}
