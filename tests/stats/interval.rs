//! Exact intervals of counts and rates.

use greenmark::stats::{binomial_interval, clopper_pearson, ln_binomial_upper};
use proptest::prelude::*;

use crate::close;

#[test]
fn clopper_pearson_agrees_with_the_beta_quantiles() {
    // scipy.stats.beta.ppf and isf.
    for (count, trials, confidence, lower, upper) in [
        (0, 100, 0.95, 0.0, 0.036_216_692_645_176_41),
        (100, 100, 0.95, 0.963_783_307_354_823_5, 1.0),
        (5, 100, 0.999, 0.006_433_946_195_449_595, 0.163_614_992_527_414_9),
        (12, 1_000_000, 0.999, 3.726_360_502_518_035e-6, 2.820_321_656_337_88e-5),
        (0, 10_000_000, 0.999, 0.0, 7.600_899_570_856_9e-7),
        (50, 100, 0.99, 0.368_861_437_358_924_1, 0.631_138_562_641_077_5),
    ] {
        let interval = clopper_pearson(count, trials, confidence);
        close(interval.0, lower, 1e-9);
        close(interval.1, upper, 1e-9);
    }
    assert_eq!(clopper_pearson(0, 0, 0.95), (0.0, 1.0));
}

#[test]
fn binomial_intervals_agree_with_the_quantiles() {
    // scipy.stats.binom.ppf and isf.
    for (n, p, confidence, interval) in [
        (2000, 0.01, 0.999, (7, 36)),
        (1_000_000, 1e-5, 0.999, (2, 22)),
        (25, 0.5, 0.95, (8, 17)),
        (1_000_000, 0.25, 0.999, (248_576, 251_426)),
        (10, 0.0, 0.9, (0, 0)),
        (10, 1.0, 0.9, (10, 10)),
        (0, 0.5, 0.9, (0, 0)),
    ] {
        assert_eq!(binomial_interval(n, p, confidence), interval);
    }
}

proptest! {
    #[test]
    fn the_limits_are_where_the_tails_are(count in 0u64..60, more in 1u64..2000, confidence in 0.5f64..0.9999) {
        let trials = count + more;
        let (lower, upper) = clopper_pearson(count, trials, confidence);
        let tail = (1.0 - confidence) / 2.0;
        if count > 0 {
            prop_assert!((ln_binomial_upper(trials, count, lower).exp() / tail - 1.0).abs() < 1e-6);
        }
        let below = 1.0 - ln_binomial_upper(trials, count + 1, upper).exp();
        prop_assert!((below / tail - 1.0).abs() < 1e-6);
    }

    #[test]
    fn beyond_the_interval_lies_at_most_the_rest(n in 1u64..3000, p in 0.0f64..1.0, confidence in 0.5f64..0.9999) {
        let (low, high) = binomial_interval(n, p, confidence);
        let tail = (1.0 - confidence) / 2.0 * (1.0 + 1e-9);
        let above = |k: u64| ln_binomial_upper(n, k, p).exp();
        prop_assert!(above(high + 1) <= tail && 1.0 - above(low) <= tail);
        prop_assert!(high == 0 || above(high) > tail * (1.0 - 1e-6));
        prop_assert!(low == n || 1.0 - above(low + 1) > tail * (1.0 - 1e-6));
    }
}
