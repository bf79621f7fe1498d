//! The exponential variate and its logarithm.

use greenmark::prf::{
    ChaCha8Stream, DRAW_TAG, draw_seed, ln, neg_ln_one_minus_uniform, neg_ln_uniform,
};
use proptest::prelude::*;

use crate::vectors;

fn relative(found: f64, expected: f64) -> f64 {
    ((found - expected) / expected).abs()
}

#[test]
fn ln_is_accurate_over_the_whole_range_of_f64() {
    // Exponents from the subnormal numbers to the largest, 64 mantissas each.
    let mut worst: f64 = 0.0;
    for exponent in -1074..1024 {
        for step in 0..64 {
            let x = 2f64.powi(exponent) * (1.0 + f64::from(step) / 64.0);
            if x.is_finite() && x > 0.0 && x.to_bits() != 1f64.to_bits() {
                worst = worst.max(relative(ln(x), x.ln()));
            }
        }
    }
    assert!(worst < 5e-16, "{worst:e}");
}

#[test]
fn ln_is_accurate_next_to_one() {
    for exponent in 1..=52 {
        let step = 2f64.powi(-exponent);
        for x in [1.0 + step, 1.0 - step / 2.0, 1.0 + step * 0.75, 1.0 - step * 0.375] {
            if x.to_bits() != 1f64.to_bits() {
                assert!(relative(ln(x), x.ln()) < 5e-16, "{x:e}");
            }
        }
    }
    assert_eq!(ln(1.0).to_bits(), 0);
}

#[test]
fn ln_of_what_has_none() {
    assert_eq!(ln(0.0), f64::NEG_INFINITY);
    assert_eq!(ln(-0.0), f64::NEG_INFINITY);
    assert_eq!(ln(f64::INFINITY), f64::INFINITY);
    assert!(ln(-1.0).is_nan());
    assert!(ln(f64::NEG_INFINITY).is_nan());
    assert!(ln(f64::NAN).is_nan());
}

/// Values of 40-digit arithmetic.
#[test]
fn both_ends_of_the_uniform_keep_their_digits() {
    let cases = [
        // u = 2^-65 and 3 * 2^-65.
        (0, 45.054_566_736_396_445),
        (1, 43.955_954_447_728_34),
        // u = 1/2 + 2^-65: ln 2 - 2^-64.
        (1 << 63, std::f64::consts::LN_2),
        // 1 - u = 2^-65, 3 * 2^-65 and 2^-32 + 2^-65.
        (u64::MAX, 2.710_505_431_213_761e-20),
        (u64::MAX - 1, 8.131_516_293_641_283e-20),
        (u64::MAX - (1 << 32), 2.328_306_437_080_797_4e-10),
    ];
    for (bits, expected) in cases {
        assert!(relative(neg_ln_uniform(bits), expected) < 1e-15, "{bits}");
        assert!(relative(neg_ln_one_minus_uniform(!bits), expected) < 1e-15, "{bits}");
    }
}

#[test]
fn golden_exponentials_of_the_draw() {
    let file = vectors::read(&vectors::repository_folder().join("draw.json"));
    let draws = file["draws"].as_array().expect("draws");
    assert!(!draws.is_empty());
    for draw in draws {
        let seed = draw["seed"].as_str().expect("seed").parse().expect("u64");
        let sample = u32::try_from(draw["sample"].as_u64().expect("sample")).expect("u32");
        let step = draw["step"].as_u64().expect("step");
        let mut stream = ChaCha8Stream::new(&draw_seed(DRAW_TAG, seed, sample, step));
        let exponentials = draw["exponential"].as_object().expect("exponential");
        assert!(!exponentials.is_empty());
        for (token, expected) in exponentials {
            let bits = stream.word_pair(token.parse().expect("token id"));
            assert_eq!(bits.to_string(), draw["words"][token].as_str().expect("word"));
            let expected = expected.as_f64().expect("number");
            assert!(relative(neg_ln_uniform(bits), expected) < 1e-12, "{draw} token {token}");
        }
    }
}

#[test]
fn golden_scores_of_the_race() {
    let file = vectors::read(&vectors::repository_folder().join("draw.json"));
    for case in file["gumbel"].as_array().expect("gumbel") {
        let text = case["seed"].as_str().expect("seed");
        let mut seed = [0; 32];
        for (index, byte) in seed.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).expect("hex");
        }
        let mut stream = ChaCha8Stream::new(&seed);
        for (token, expected) in case["score"].as_object().expect("score") {
            let bits = stream.word_pair(token.parse().expect("token id"));
            let expected = expected.as_f64().expect("number");
            assert!(relative(neg_ln_one_minus_uniform(bits), expected) < 1e-12, "token {token}");
        }
    }
}

proptest! {
    #[test]
    fn exponential_agrees_with_the_platform(bits: u64) {
        let u = (bits as f64 + 0.5) / 2f64.powi(64);
        let v = (!bits as f64 + 0.5) / 2f64.powi(64);
        let expected = if u < 0.5 { -u.ln() } else { -(-v).ln_1p() };
        prop_assert!(relative(neg_ln_uniform(bits), expected) < 1e-15);
    }

    #[test]
    fn exponential_falls_as_the_bits_rise(a: u64, b: u64) {
        let (low, high) = (a.min(b), a.max(b));
        prop_assert!(neg_ln_uniform(low) >= neg_ln_uniform(high));
    }
}
