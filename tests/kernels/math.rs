//! The arithmetic and the memory layout that both sides share.

use greenmark::prf;
use greenmark::sample::{kernel, math};

use crate::emulator;
use crate::random::Random;

#[test]
fn rows_have_the_same_layout_on_both_sides() {
    assert_eq!(kernel::layout(), emulator::layout());
}

#[test]
fn functions_have_the_same_bits() {
    let mut random = Random::new(1);
    for step in 0..200_000u32 {
        let x = (random.unit() - 0.5) * 1_500.0;
        assert_eq!(emulator::exp(x).to_bits(), math::exp(x).to_bits(), "exp({x})");
        let y = f64::from_bits(random.next() >> 1 | 1);
        if y.is_finite() {
            assert_eq!(emulator::ln(y).to_bits(), prf::ln(y).to_bits(), "ln({y})");
        }
        let bits = random.next() >> (step % 64);
        for bits in [bits, !bits] {
            let (found, expected) = (emulator::neg_ln_uniform(bits), prf::neg_ln_uniform(bits));
            assert_eq!(found.to_bits(), expected.to_bits(), "-ln u({bits})");
        }
        let difference = -(random.unit() * 40.0) as f32;
        let mass = math::mass(difference);
        assert_eq!(emulator::mass(difference), mass, "mass({difference})");
        assert_eq!(
            emulator::surprisal_mass(difference, mass),
            math::surprisal_mass(difference, mass)
        );
        let value = f32::from_bits(random.next() as u32);
        if !value.is_nan() {
            assert_eq!(emulator::rank_key(value), math::rank_key(value), "rank_key({value})");
        }
    }
}

#[test]
fn ends_of_the_functions_are_the_same() {
    for x in [-800.0, -746.0, -745.2, -0.0, 0.0, 709.78, 709.8, 710.0, 1e300, f64::NAN] {
        assert_eq!(emulator::exp(x).to_bits(), math::exp(x).to_bits(), "exp({x})");
    }
    for x in [f64::MIN_POSITIVE, 5e-324, 1.0, f64::MAX, std::f64::consts::SQRT_2] {
        assert_eq!(emulator::ln(x).to_bits(), prf::ln(x).to_bits(), "ln({x})");
    }
    for bits in [0, 1, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1] {
        let (found, expected) = (emulator::neg_ln_uniform(bits), prf::neg_ln_uniform(bits));
        assert_eq!(found.to_bits(), expected.to_bits());
    }
    for difference in [0.0, -0.0, -30.4, -30.6, -31.0, -1e30, f32::NEG_INFINITY] {
        assert_eq!(emulator::mass(difference), math::mass(difference), "mass({difference})");
    }
    for value in [0.0, -0.0, f32::MIN, f32::MAX, f32::NEG_INFINITY, f32::INFINITY, 1e-45, -1e-45] {
        assert_eq!(emulator::rank_key(value), math::rank_key(value));
    }
}

#[test]
fn wide_integers_round_to_the_nearest_even() {
    let mut random = Random::new(2);
    let mut cases = vec![0, 1, u128::MAX, 1 << 64, (1 << 64) + 1, (1u128 << 117) - 1];
    for shift in 0..128 {
        let wide = u128::from(random.next()) << 64 | u128::from(random.next());
        cases.push(wide >> shift);
        // Ties, and ties with a bit far below.
        let tie = ((1u128 << 54) + 2) << (shift % 73) | (1u128 << (shift % 73));
        cases.extend([tie, tie + 1, tie - 1]);
    }
    for wide in cases {
        assert_eq!(emulator::wide_to_double(wide).to_bits(), (wide as f64).to_bits(), "{wide}");
    }
}
