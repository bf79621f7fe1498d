//! The tails over their whole range against 40-digit values (`tools/tail-vectors`).

use greenmark::stats::{ln_binomial_upper, ln_gamma_upper, ln_normal_upper, normal_upper};
use serde_json::Value;
use std::f64::consts::LN_10;

fn cases(distribution: &str) -> Vec<Value> {
    let path = format!("{}/data/vectors/tails.json", env!("CARGO_MANIFEST_DIR"));
    let vectors: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    vectors[distribution].as_array().unwrap().clone()
}

fn number(case: &Value, field: &str) -> f64 {
    case[field].as_f64().unwrap()
}

/// The bars: the probability to `relative`, its decimal logarithm to 1e-6 where the probability is
/// no double, and near certainty the probability of the opposite to 1e-6.
fn check(case: &Value, actual: f64, relative: f64) {
    let expected: f64 = case["ln"].as_str().unwrap().parse().unwrap();
    let error = (actual - expected).abs();
    if std::env::var_os("SHOW").is_some() {
        println!("{case} {error:e} {:e}", error / expected.abs());
    }
    if expected > -690.0 {
        assert!(error <= relative, "{case}: {actual} is off by {error:e}");
    } else {
        assert!(error <= 1e-6 * LN_10, "{case}: {actual} is off by {error:e}");
    }
    if (-1.0..-1e-300).contains(&expected) {
        assert!(error <= 1e-6 * expected.abs(), "{case}: {actual} has {} of 1", error / expected);
    }
}

#[test]
fn binomial_tails_have_their_digits_for_any_count_up_to_ten_million() {
    for case in cases("binomial") {
        let n = case["n"].as_u64().unwrap();
        let k = case["k"].as_u64().unwrap();
        check(&case, ln_binomial_upper(n, k, number(&case, "p")), 1e-9);
    }
}

#[test]
fn gamma_tails_have_their_digits_for_any_shape_up_to_ten_million() {
    for case in cases("gamma") {
        check(&case, ln_gamma_upper(number(&case, "shape"), number(&case, "x")), 1e-9);
    }
}

#[test]
fn w11_normal_tails_have_their_digits_at_any_z() {
    for case in cases("normal") {
        let z = number(&case, "z");
        check(&case, ln_normal_upper(z), 1e-12);
        let expected: f64 = case["ln"].as_str().unwrap().parse().unwrap();
        if expected > -690.0 {
            assert!((normal_upper(z) / expected.exp() - 1.0).abs() < 1e-12, "{case}");
        }
    }
}
