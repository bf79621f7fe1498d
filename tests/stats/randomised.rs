//! Randomised tests have exactly the level they are asked for.

use greenmark::prf::ChaCha8Stream;
use greenmark::stats::{LogProbability, MeanInterval, Tails, ln_binomial_upper};
use proptest::prelude::*;

use crate::close;

fn ln(p: f64) -> LogProbability {
    LogProbability::from_ln(p.ln())
}

/// The chance that the null takes the value k.
fn mass(n: u64, k: u64, p: f64) -> f64 {
    ln_binomial_upper(n, k, p).exp() - ln_binomial_upper(n, k + 1, p).exp()
}

#[test]
fn the_level_is_exact_where_the_plain_test_stays_below_it() {
    for n in [1, 2, 25, 200] {
        for p in [0.25, 0.5] {
            for alpha in [0.9, 0.05, 1e-3, 1e-5] {
                let rejection = |k| Tails::binomial(n, k, p).rejection(ln(alpha));
                let level: f64 = (0..=n).map(|k| mass(n, k, p) * rejection(k)).sum();
                close(level, alpha, 1e-9);
            }
        }
    }
    // At T = 25 and gamma .5 the plain test at 1e-3 has the level 4.6e-4 = P(X >= 21).
    let plain = |k| Tails::binomial(25, k, 0.5).at_least() <= ln(1e-3);
    let level: f64 = (0..=25).filter(|&k| plain(k)).map(|k| mass(25, k, 0.5)).sum();
    close(level, 4.55e-4, 5e-3);
}

#[test]
fn one_trial_by_hand() {
    // A coin: heads has the tails 1/2 and 0, tails 1 and 1/2.
    let (heads, tails) = (Tails::binomial(1, 1, 0.5), Tails::binomial(1, 0, 0.5));
    close(heads.rejection(ln(0.1)), 0.2, 1e-12);
    assert_eq!(heads.rejection(ln(0.5)), 1.0);
    assert_eq!(tails.rejection(ln(0.5)), 0.0);
    close(tails.rejection(ln(0.75)), 0.5, 1e-12);
    close(heads.randomised(0.2).ln().exp(), 0.1, 1e-12);
    close(tails.randomised(0.5).ln().exp(), 0.75, 1e-12);
    close(tails.randomised(7.0).ln().exp(), 1.0, 1e-12);
}

#[test]
fn without_an_atom_nothing_is_drawn_and_without_evidence_everything_is() {
    let tails = Tails::continuous(ln(0.01));
    for u in [0.0, 0.3, 1.0] {
        close(tails.randomised(u).ln().exp(), 0.01, 1e-12);
        close(Tails::certain().randomised(u).ln().exp() + 1.0, u + 1.0, 1e-12);
    }
    assert_eq!((tails.rejection(ln(0.01)), tails.rejection(ln(0.0099))), (1.0, 0.0));
    for alpha in [1e-5, 0.5] {
        close(Tails::certain().rejection(ln(alpha)), alpha, 1e-12);
    }
    assert_eq!(Tails::binomial(0, 0, 0.5), Tails::certain());
}

#[test]
fn far_below_the_smallest_double_the_atom_is_still_divided() {
    // 5000 of 5000 at one half: p is 2^-5000, and nothing lies above.
    let all = Tails::binomial(5000, 5000, 0.5);
    let half = LogProbability::from_ln(all.at_least().ln() - 2f64.ln());
    close(all.rejection(half), 0.5, 1e-9);
    close(all.randomised(0.5).ln(), half.ln(), 1e-12);
}

#[test]
fn a_simulated_null_gives_uniform_p_and_the_stated_rate() {
    // 100,000 counts of 25 coins by an independent route: the bits of a key stream.
    let mut stream = ChaCha8Stream::new(&[77; 32]);
    let samples = 100_000u64;
    let (mut below, mut rejected) = ([0u64; 10], 0u64);
    for index in 0..samples {
        let count = u64::from((stream.word(2 * index) & 0x01ff_ffff).count_ones());
        let u = (f64::from(stream.word(2 * index + 1)) + 0.5) / 4_294_967_296.0;
        let tails = Tails::binomial(25, count, 0.5);
        let p = tails.randomised(u).ln().exp();
        below[((p * 10.0) as usize).min(9)] += 1;
        rejected += u64::from(u < tails.rejection(ln(1e-3)));
    }
    // Each tenth holds Binomial(100000, 0.1): sd 94.9, and 99.9% of each within 3.29 sd.
    for count in below {
        assert!((count as f64 - 10_000.0).abs() <= 3.29 * 94.9, "{below:?}");
    }
    // Binomial(100000, 1e-3) lies between 69 and 136 with 99.9%.
    assert!((69..=136).contains(&rejected), "{rejected}");
}

proptest! {
    #[test]
    fn the_randomised_p_and_the_chance_of_rejection_agree(
        n in 1u64..300, share in 0.0f64..1.0, p in 0.05f64..0.95, u in 0.001f64..0.999,
        ln_alpha in -40.0f64..-0.01,
    ) {
        let k = (share * n as f64) as u64;
        let tails = Tails::binomial(n, k, p);
        let alpha = LogProbability::from_ln(ln_alpha);
        let rejection = tails.rejection(alpha);
        prop_assert!((0.0..=1.0).contains(&rejection));
        if (rejection - u).abs() > 1e-9 {
            prop_assert_eq!(u < rejection, tails.randomised(u) <= alpha);
        }
    }
}

#[test]
fn students_interval_equals_the_textbook() {
    // Mean 3, variance 2.5, five samples: 3 +- 2.776445 sqrt(2.5 / 5).
    let interval = MeanInterval::new(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
    close(interval.mean, 3.0, 1e-12);
    close(interval.upper - 3.0, 2.776_445_105 * 0.5f64.sqrt(), 1e-8);
    close(3.0 - interval.lower, interval.upper - 3.0, 1e-12);
    let scaled = interval.map(f64::exp);
    assert_eq!((scaled.mean, scaled.upper), (3f64.exp(), interval.upper.exp()));
    let level = MeanInterval::new(&[2.0, 2.0], 0.95).unwrap();
    assert_eq!((level.lower, level.upper), (2.0, 2.0));
    assert_eq!(MeanInterval::new(&[1.0], 0.95), None);
    assert_eq!(MeanInterval::new(&[1.0, 2.0], 1.0), None);
}
