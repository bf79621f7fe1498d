//! The one arithmetic.

use greenmark::sample::math::{
    MASS_ONE, MAX_CANDIDATES, exp, exp_f32, ln_mass, mass, powi, rank_key, surprisal_mass,
};
use proptest::prelude::*;

#[test]
fn exp_is_accurate_over_the_whole_range_of_f64() {
    let mut worst: f64 = 0.0;
    for step in -708_000..=709_700_i32 {
        let x = f64::from(step) / 1000.0;
        worst = worst.max((exp(x) / x.exp() - 1.0).abs());
    }
    for exponent in 1..=60 {
        for x in [2f64.powi(-exponent), -2f64.powi(-exponent)] {
            worst = worst.max((exp(x) / x.exp() - 1.0).abs());
        }
    }
    assert!(worst < 5e-16, "{worst:e}");
}

#[test]
fn exp_at_its_ends() {
    assert_eq!(exp(0.0), 1.0);
    assert_eq!(exp(-0.0), 1.0);
    assert_eq!(exp(709.79), f64::INFINITY);
    assert_eq!(exp(f64::INFINITY), f64::INFINITY);
    assert_eq!(exp(f64::NEG_INFINITY), 0.0);
    assert_eq!(exp(-746.0), 0.0);
    assert!(exp(709.78).is_finite());
    assert!(exp(f64::NAN).is_nan());
    // Subnormal results, in units of the smallest number.
    let unit = f64::from_bits(1);
    for x in [-709.0, -720.0, -740.0, -745.0] {
        assert!((exp(x) - x.exp()).abs() <= unit, "{x}");
    }
}

#[test]
fn exp_f32_is_accurate_over_its_range() {
    let mut worst: f64 = 0.0;
    for step in -87_300..=88_700_i32 {
        #[expect(clippy::cast_possible_truncation, reason = "an f32 argument is wanted")]
        let x = (f64::from(step) / 1000.0) as f32;
        worst = worst.max((f64::from(exp_f32(x)) / f64::from(x).exp() - 1.0).abs());
    }
    assert!(worst < 1.5e-7, "{worst:e}");
    assert_eq!(exp_f32(0.0), 1.0);
    assert_eq!(exp_f32(89.0), f32::INFINITY);
    assert_eq!(exp_f32(f32::INFINITY), f32::INFINITY);
    assert_eq!(exp_f32(-104.0), 0.0);
    assert_eq!(exp_f32(f32::NEG_INFINITY), 0.0);
    assert!(exp_f32(f32::NAN).is_nan());
    assert!((f64::from(exp_f32(-100.0)) - (-100f64).exp()).abs() < 1.5e-45);
}

#[test]
fn masses_are_the_rounded_weights() {
    let one = MASS_ONE as f64;
    for step in 0..=3_200_i32 {
        for fine in 0..7 {
            #[expect(clippy::cast_possible_truncation, reason = "differences are f32")]
            let difference = -(f64::from(step) / 100.0 + f64::from(fine) * 1.3e-3) as f32;
            let exact = f64::from(difference).exp() * one;
            let found = mass(difference) as f64;
            // Half a unit of the grid and the error of exp.
            assert!((found - exact).abs() <= 0.5 + exact * 3e-15, "{difference}: {found} {exact}");
            let surprisal = surprisal_mass(difference, mass(difference)) as f64;
            let exact = found * -f64::from(difference);
            assert!((surprisal - exact).abs() <= 0.5 + exact * 1e-15, "{difference}");
            assert!(surprisal < 0.37 * one);
        }
    }
    assert_eq!(mass(0.0), MASS_ONE);
    assert_eq!(mass(-0.0), MASS_ONE);
    assert_eq!(mass(f32::NEG_INFINITY), 0);
    assert_eq!(mass(f32::MIN), 0);
    assert_eq!(surprisal_mass(f32::NEG_INFINITY, 0), 0);
}

#[test]
fn a_sum_over_the_largest_vocabulary_fits() {
    let candidates = u64::try_from(MAX_CANDIDATES).expect("fits");
    assert_eq!(candidates.checked_mul(MASS_ONE), Some(1 << 63));
    assert!((ln_mass(1 << 63) - 20.0 * std::f64::consts::LN_2).abs() < 1e-14);
}

#[test]
fn rank_keys_order_all_numbers() {
    let ascending = [
        f32::NEG_INFINITY,
        f32::MIN,
        -1.0,
        -f32::MIN_POSITIVE,
        -f32::from_bits(1),
        0.0,
        f32::from_bits(1),
        1.0,
        1.0 + f32::EPSILON,
        f32::MAX,
        f32::INFINITY,
    ];
    assert!(ascending.map(rank_key).is_sorted_by(|a, b| a < b));
    assert_eq!(rank_key(-0.0), rank_key(0.0));
}

#[test]
fn integer_powers() {
    assert_eq!(powi(1.75, 0), 1.0);
    assert_eq!(powi(1.75, 3), 5.359_375);
    assert_eq!(powi(2.0, 100), 2f64.powi(100));
    assert_eq!(powi(1.0, u32::MAX), 1.0);
    assert_eq!(powi(2.0, u32::MAX), f64::INFINITY);
}

proptest! {
    #[test]
    fn rank_keys_order_as_the_numbers_do(a in any::<f32>(), b in any::<f32>()) {
        prop_assume!(!a.is_nan() && !b.is_nan());
        prop_assert_eq!(a < b, rank_key(a) < rank_key(b));
        prop_assert_eq!(a == b, rank_key(a) == rank_key(b));
    }

    #[test]
    fn a_larger_logit_never_has_less_mass(a in -40f32..=0.0, b in -40f32..=0.0) {
        prop_assert!(mass(a.min(b)) <= mass(a.max(b)));
    }
}
