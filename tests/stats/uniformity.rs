//! The Kolmogorov-Smirnov test.

use greenmark::stats::kolmogorov_smirnov;

use crate::close;

/// `n` samples whose largest distance from the uniform distribution is `d`: all are spaced evenly
/// and moved down by so much that the first stands at 0 and the last ones keep a distance of `d`.
fn at_distance(n: usize, d: f64) -> Vec<f64> {
    (0..n).map(|i| ((i + 1) as f64 / n as f64 - d).max(0.0)).collect()
}

#[test]
fn p_values_agree_with_the_exact_distribution() {
    // scipy.stats.kstwo.sf; beyond 100 samples ours is an approximation.
    for (n, d, expected, within) in [
        (5, 0.3, 0.664, 1e-12),
        (5, 0.6, 0.030_08, 1e-12),
        (10, 0.2, 0.748_719_04, 1e-12),
        (10, 0.4, 0.058_989_245_199_249_2, 1e-12),
        (20, 0.3, 0.043_067_066_658_516_23, 1e-12),
        (100, 0.1, 0.252_692_757_006_387_4, 1e-12),
        (1000, 0.02, 0.810_897_165_689_557_7, 1e-5),
        (1000, 0.04, 0.079_339_560_590_002_24, 1e-5),
        (100_000, 0.004, 0.081_301_489_202_224_69, 1e-7),
        (1_000_000, 0.0021, 0.000_295_081_341_751_857_9, 1e-8),
    ] {
        let test = kolmogorov_smirnov(&mut at_distance(n, d));
        close(test.statistic, d, 1e-9);
        assert!((test.p_value - expected).abs() < within, "{n} {d}: {}", test.p_value);
    }
}

#[test]
fn samples_outside_the_interval_are_not_uniform() {
    for bad in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
        let test = kolmogorov_smirnov(&mut [0.1, 0.5, bad, 0.9]);
        assert_eq!((test.statistic, test.p_value), (1.0, 0.0), "{bad}");
    }
    assert_eq!(kolmogorov_smirnov(&mut []).p_value, 1.0);
    assert_eq!(kolmogorov_smirnov(&mut [0.5]).p_value, 1.0);
}

#[test]
fn a_shifted_sample_is_found_and_an_even_one_is_not() {
    let even: Vec<f64> = (0..2000).map(|i| (f64::from(i) + 0.5) / 2000.0).collect();
    assert!(kolmogorov_smirnov(&mut even.clone()).p_value > 0.999);
    let mut squared: Vec<f64> = even.iter().map(|u| u * u).collect();
    assert!(kolmogorov_smirnov(&mut squared).p_value < 1e-10);
}
