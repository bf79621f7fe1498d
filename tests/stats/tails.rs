//! Tails against closed forms, 40-digit values and an independent library.

use greenmark::stats::{
    LogProbability, ln_binomial_upper, ln_gamma_upper, ln_normal_upper, normal_upper,
};
use proptest::prelude::*;
use std::f64::consts::{LN_2, LN_10};

use crate::close;

#[test]
fn w10_short_texts_have_exact_tails_beside_the_normal_ones() {
    // (green, scored, gamma, z, normal p, exact p)
    for (green, scored, gamma, z, normal, exact) in [
        (28, 36, 0.25, 7.3131, 1.305e-13, 4.623e-11),
        (1, 1, 0.5, 1.0, 0.1587, 0.5),
        (60, 100, 0.25, 8.0829, 3.162e-16, 1.327e-13),
    ] {
        let (g, t) = (f64::from(green), f64::from(scored));
        close((g - gamma * t) / (t * gamma * (1.0 - gamma)).sqrt(), z, 1e-4);
        close(normal_upper(z), normal, 2e-3);
        close(ln_binomial_upper(scored as u64, green as u64, gamma).exp(), exact, 5e-4);
    }
}

#[test]
fn w11_the_normal_tail_has_a_logarithm_where_it_underflows() {
    close(ln_normal_upper(40.0) / LN_10, -349.437, 1e-6);
    close(ln_normal_upper(38.0) / LN_10, 2.885e-316_f64.log10(), 1e-5);
    let all_green = LogProbability::from_ln(ln_binomial_upper(5000, 5000, 0.5));
    close(all_green.log10(), -5000.0 * 2f64.log10(), 1e-12);
    assert_eq!(all_green.p_value().value(), None);
    assert_eq!(all_green.p_value().status(), Some("underflow"));
}

#[test]
fn binomial_tail_equals_closed_forms() {
    close(ln_binomial_upper(10_000_000, 10_000_000, 0.5), -1e7 * LN_2, 1e-14);
    close(
        ln_binomial_upper(10_000_000, 1, 1e-9),
        (1.0 - (1e7 * (-1e-9f64).ln_1p()).exp()).ln(),
        1e-9,
    );
    // Odd n at one half: the upper half of a symmetric distribution.
    for n in [1u64, 3, 25, 1001, 999_999] {
        close(ln_binomial_upper(n, n.div_ceil(2), 0.5), -LN_2, 1e-12);
    }
    assert_eq!(ln_binomial_upper(10, 0, 0.3), 0.0);
    assert_eq!(ln_binomial_upper(10, 11, 0.3), f64::NEG_INFINITY);
}

/// The tail by adding exact integer binomial coefficients, for small n.
fn brute_tail(n: u32, k: u32, p: f64) -> f64 {
    let mut coefficient = 1.0;
    let mut sum = 0.0;
    for j in 0..=n {
        if j >= k {
            sum += coefficient * p.powi(j as i32) * (1.0 - p).powi((n - j) as i32);
        }
        coefficient = coefficient * f64::from(n - j) / f64::from(j + 1);
    }
    sum
}

proptest! {
    #[test]
    fn binomial_tail_equals_the_sum_of_its_terms(n in 1u32..50, k in 0u32..50, p in 0.01f64..0.99) {
        let k = k.min(n);
        let expected = brute_tail(n, k, p);
        prop_assert!((ln_binomial_upper(n.into(), k.into(), p).exp() / expected - 1.0).abs() < 1e-11);
    }

    #[test]
    fn binomial_tail_falls_with_the_count(n in 2u64..100_000, share in 0.0f64..0.99, p in 0.05f64..0.95) {
        let k = (share * n as f64) as u64;
        prop_assert!(ln_binomial_upper(n, k + 1, p) <= ln_binomial_upper(n, k, p) + 1e-12);
    }

    #[test]
    fn gamma_tail_of_whole_shapes_is_a_poisson_sum(n in 1u32..60, x in 0.01f64..150.0) {
        let mut term = (-x).exp();
        let mut sum = 0.0;
        for j in 0..n {
            sum += term;
            term *= x / f64::from(j + 1);
        }
        let actual = ln_gamma_upper(f64::from(n), x).exp();
        prop_assert!((actual / sum - 1.0).abs() < 1e-10, "{actual:e} {sum:e}");
    }
}

#[test]
fn tails_agree_with_an_independent_library_where_it_is_accurate() {
    use statrs::distribution::{Binomial, DiscreteCDF};
    for (n, k, p) in [(100u64, 60u64, 0.5), (200, 130, 0.5), (1000, 300, 0.25), (36, 28, 0.25)] {
        let expected = Binomial::new(p, n).unwrap().sf(k - 1);
        close(ln_binomial_upper(n, k, p).exp(), expected, 1e-9);
    }
}

#[test]
fn far_gamma_tails_have_the_right_logarithm() {
    // Q(1, x) = e^-x.
    close(ln_gamma_upper(1.0, 5000.0), -5000.0, 1e-13);
    // Q(2, x) = (1 + x) e^-x.
    close(ln_gamma_upper(2.0, 800.0), 801f64.ln() - 800.0, 1e-13);
    assert_eq!(ln_gamma_upper(10.0, 0.0), 0.0);
}

#[test]
fn correction_multiplies_and_stops_at_one() {
    let p = LogProbability::from_ln((1e-3f64).ln());
    close(p.corrected(20).p_value().value().unwrap(), 0.02, 1e-12);
    assert_eq!(p.corrected(10_000), LogProbability::ONE);
}

#[test]
fn normal_tail_has_its_digits() {
    // 40-digit values.
    for (z, expected) in [
        (-3.0, 0.998_650_101_968_369_9),
        (0.0, 0.5),
        (0.5, 0.308_537_538_725_986_9),
        (1.0, 0.158_655_253_931_457_05),
        (3.0, 0.001_349_898_031_630_094_6),
        (4.0, 3.167_124_183_311_992e-5),
        (10.0, 7.619_853_024_160_525e-24),
    ] {
        close(normal_upper(z), expected, 3e-15);
        // Near certainty the logarithm of a double has fewer digits than the tail itself.
        if z >= 0.0 {
            close(ln_normal_upper(z), f64::ln(expected), 3e-15);
        }
    }
}
