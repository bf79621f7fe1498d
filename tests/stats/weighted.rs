//! Weighted sums: bounds against enumeration, lattices, simulation and themselves.

use greenmark::stats::{
    LogProbability, TailBounds, TailMethod, Trial, binomial_interval, ln_binomial_upper,
    weighted_threshold, weighted_upper,
};
use proptest::prelude::*;

use crate::close;

/// The generator `SplitMix64`, for weights and for simulation.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

type Draw = fn(&mut Random) -> f64;

const WEIGHTS: [(&str, Draw); 10] = [
    ("uniform", Random::next),
    ("equal", |_| 0.3),
    ("two decimals", |r| if r.next() < 0.3 { 1.0 } else { 0.37 }),
    ("two reals", |r| if r.next() < 0.3 { std::f64::consts::SQRT_2 } else { 1.0 }),
    ("tenths", |r| (r.next() * 20.0).ceil() / 10.0),
    ("pareto", |r| 1.0 / (1.0 - r.next())),
    ("heavy", |r| (4.0 * (r.next() + r.next() + r.next() + r.next() - 2.0)).exp()),
    // Like the weights of a likelihood ratio: many near the largest, some far below.
    ("clamped", |r| (2.5 * r.next()).min(2.0 - 1e-3 * r.next())),
    ("square", |r| r.next().powi(2)),
    ("nearly equal", |r| 2.0 - 10f64.powf(-2.0 - 2.0 * r.next())),
];

fn trials(count: usize, weight: Draw, rate: Draw) -> Vec<Trial> {
    let mut random = Random(7);
    (0..count).map(|_| Trial { weight: weight(&mut random), rate: rate(&mut random) }).collect()
}

fn ratio(bounds: &TailBounds) -> f64 {
    (bounds.upper.ln() - bounds.lower.ln()).exp()
}

/// The mean plus some standard deviations.
fn value_at(trials: &[Trial], z: f64) -> f64 {
    let mean: f64 = trials.iter().map(|t| t.weight * t.rate).sum();
    let variance: f64 = trials.iter().map(|t| t.weight.powi(2) * t.rate * (1.0 - t.rate)).sum();
    mean + z * variance.sqrt()
}

/// A sum of some of the weights near `value`, as a detector would add them.
fn attained(trials: &[Trial], value: f64) -> f64 {
    let add = |sum, trial: &Trial| {
        if sum + trial.weight <= value { sum + trial.weight } else { sum }
    };
    trials.iter().fold(0.0, add)
}

/// Every subset, as plainly as can be; sums within 1e-12 of `x` reach it.
fn enumerated(trials: &[Trial], x: f64) -> f64 {
    (0..1u32 << trials.len())
        .map(|subset| {
            let (mut sum, mut probability) = (0.0, 1.0);
            for (index, trial) in trials.iter().enumerate() {
                if subset >> index & 1 == 1 {
                    sum += trial.weight;
                    probability *= trial.rate;
                } else {
                    probability *= 1.0 - trial.rate;
                }
            }
            if sum >= x - 1e-12 { probability } else { 0.0 }
        })
        .sum()
}

fn assert_holds(bounds: &TailBounds, exact: f64) {
    let (lower, upper) = (bounds.lower.ln().exp(), bounds.upper.ln().exp());
    assert!(
        lower <= exact * (1.0 + 1e-11) && exact <= upper * (1.0 + 1e-11),
        "{exact:e} is not in {lower:e}..{upper:e} ({:?})",
        bounds.method
    );
    assert!(exact == 0.0 || upper / lower <= 1.02, "{lower:e}..{upper:e} ({:?})", bounds.method);
}

proptest! {
    #[test]
    fn bounds_hold_every_subset_with_ties(
        parts in prop::collection::vec((0u32..12, 0u32..=20), 1..14),
        subset: u32,
    ) {
        // Tenths that are not exact in binary, and rates that include 0 and 1.
        let trials: Vec<Trial> = parts
            .iter()
            .map(|&(w, r)| Trial { weight: f64::from(w) * 0.1, rate: f64::from(r) / 20.0 })
            .collect();
        let chosen = trials.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1);
        let x: f64 = chosen.map(|(_, trial)| trial.weight).sum();
        assert_holds(&weighted_upper(&trials, x), enumerated(&trials, x));
    }

    #[test]
    fn bounds_hold_every_subset_of_any_weights(
        parts in prop::collection::vec((1e-3f64..1e3, 1e-6f64..0.999_999), 1..14),
        share in 0.0f64..1.0,
        subset: u32,
    ) {
        let trials: Vec<Trial> =
            parts.iter().map(|&(weight, rate)| Trial { weight, rate }).collect();
        let total: f64 = trials.iter().map(|trial| trial.weight).sum();
        // Backwards: the order of an observed sum is not the order of the trials.
        let chosen = trials.iter().enumerate().rev().filter(|(i, _)| subset >> i & 1 == 1);
        let tie: f64 = chosen.map(|(_, trial)| trial.weight).sum();
        for x in [share * total, tie] {
            let exact = enumerated(&trials, x * (1.0 - 1e-14));
            if exact < 0.9999 {
                assert_holds(&weighted_upper(&trials, x), exact);
            }
        }
    }

    #[test]
    fn bounds_hold_in_the_gaps_of_skewed_sums(
        parts in prop::collection::vec((0u32..3, 0.0f64..8.0), 1..14),
        share in 0.0f64..1.0,
    ) {
        // Rates down to 1e-8 and weights of three sizes: most values lie between outcomes.
        let weight = |size: u32| [1.0, 37.0, 3000.5][size as usize];
        let trials: Vec<Trial> = parts
            .iter()
            .map(|&(size, digits)| Trial { weight: weight(size), rate: 10f64.powf(-digits) })
            .collect();
        let x = share * trials.iter().map(|trial| trial.weight).sum::<f64>();
        assert_holds(&weighted_upper(&trials, x), enumerated(&trials, x));
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn scale_and_order_do_not_matter(seed: u64, scale in -40i32..40) {
        let mut random = Random(seed);
        let mut trials: Vec<Trial> =
            (0..40).map(|_| Trial { weight: random.next(), rate: random.next() }).collect();
        let x = value_at(&trials, 3.0);
        let bounds = weighted_upper(&trials, x);
        trials.reverse();
        for trial in &mut trials {
            trial.weight *= f64::from(scale).exp2();
        }
        let other = weighted_upper(&trials, x * f64::from(scale).exp2());
        prop_assert!((bounds.upper.ln() - other.upper.ln()).abs() < 1e-9);
    }
}

/// Asserts the promised ratio where it is promised, and says whether it was.
fn assert_close_bounds(name: &str, trials: &[Trial], x: f64) -> bool {
    let bounds = weighted_upper(trials, x);
    let promised = bounds.upper.log10() >= -30.0;
    assert!(
        !promised || ratio(&bounds) <= 1.02,
        "{} {name} at {x}: 1e{} {}",
        trials.len(),
        bounds.upper.log10(),
        ratio(&bounds)
    );
    promised
}

#[test]
fn the_bounds_are_close_for_ten_thousand_trials_down_to_1e_30() {
    let mut promised = 0;
    for (name, weight) in WEIGHTS {
        let trials = trials(10_000, weight, |r| 0.02 + 0.9 * r.next());
        for z in [3.1, 10.5] {
            promised += u32::from(assert_close_bounds(name, &trials, value_at(&trials, z)));
        }
    }
    assert!(promised >= 17, "{promised} of 20 are above 1e-30");
}

#[test]
fn the_bounds_are_close_for_any_number_of_trials_at_sums_that_occur() {
    for count in [25, 60, 200] {
        for (name, weight) in WEIGHTS {
            for rate in [(|_| 0.5) as Draw, |r| 0.02 + 0.9 * r.next()] {
                let trials = trials(count, weight, rate);
                let total: f64 = trials.iter().map(|trial| trial.weight).sum();
                for value in [value_at(&trials, 4.0), total] {
                    assert_close_bounds(name, &trials, attained(&trials, value));
                }
            }
        }
    }
}

/// ln P(sum >= x) with every weight rounded down or up to a fine step, by plain convolution.
fn rounded(trials: &[Trial], x: f64, step: f64, round: fn(f64) -> f64) -> f64 {
    let cells: Vec<usize> = trials.iter().map(|t| round(t.weight / step) as usize).collect();
    let mut law = vec![0.0; cells.iter().sum::<usize>() + 1];
    law[0] = 1.0;
    let mut top = 0;
    for (trial, &cell) in trials.iter().zip(&cells) {
        top += cell;
        for at in (0..=top).rev() {
            let from = if at >= cell { law[at - cell] } else { 0.0 };
            law[at] = law[at] * (1.0 - trial.rate) + from * trial.rate;
        }
    }
    law[(x / step).ceil() as usize..].iter().sum::<f64>().ln()
}

#[test]
fn the_bounds_hold_what_two_roundings_say() {
    for z in [1.0, 3.0, 6.0] {
        let trials = trials(60, Random::next, |r| 0.05 + 0.8 * r.next());
        let x = value_at(&trials, z);
        let bounds = weighted_upper(&trials, x);
        assert_eq!(bounds.method, TailMethod::Lattice);
        let (below, above) =
            (rounded(&trials, x, 1e-4, f64::floor), rounded(&trials, x, 1e-4, f64::ceil));
        assert!(above - below < 0.04, "the roundings themselves are close");
        assert!(bounds.lower.ln() <= above && below <= bounds.upper.ln(), "{bounds:?}");
        assert!(ratio(&bounds) <= 1.02);
    }
}

#[test]
fn lattices_of_whole_weights_are_exact() {
    let trials = trials(100, |r| (r.next() * 9.0).ceil(), Random::next);
    for z in [-1.0, 0.0, 2.0, 5.0, 9.0] {
        let x = value_at(&trials, z).round();
        let bounds = weighted_upper(&trials, x);
        let exact = rounded(&trials, x, 1.0, f64::round);
        assert!((bounds.lower.ln()..=bounds.upper.ln()).contains(&exact), "{bounds:?} {exact}");
        assert!(ratio(&bounds) < 1.0 + 1e-6);
    }
}

#[test]
fn equal_trials_are_binomial_and_zeros_drop_out() {
    let mut all = vec![Trial { weight: 0.3, rate: 0.25 }; 100];
    let binomial = ln_binomial_upper(100, 60, 0.25);
    let x: f64 = all[..60].iter().map(|trial| trial.weight).sum();
    let bounds = weighted_upper(&all, x);
    assert_eq!((bounds.lower.ln(), bounds.upper.ln()), (binomial, binomial));
    assert_eq!(bounds.method, TailMethod::Exact);
    all.extend([Trial { weight: 0.0, rate: 0.7 }, Trial { weight: 9.0, rate: 0.0 }]);
    assert_eq!(weighted_upper(&all, x).upper.ln(), binomial);
    // A certain success moves the value.
    all.push(Trial { weight: 5.0, rate: 1.0 });
    close(weighted_upper(&all, x + 5.0).upper.ln(), binomial, 1e-12);
}

#[test]
fn a_sum_keeps_its_own_atom_in_any_order_of_adding() {
    let trials = trials(99, Random::next, |_| 0.5);
    let all_green = -99.0 * std::f64::consts::LN_2;
    let sums = [
        trials.iter().map(|trial| trial.weight).sum::<f64>(),
        trials.iter().rev().map(|trial| trial.weight).sum::<f64>(),
        trials.chunks(7).map(|part| part.iter().map(|t| t.weight).sum::<f64>()).sum(),
    ];
    for x in sums {
        let bounds = weighted_upper(&trials, x);
        close(bounds.upper.ln(), all_green, 1e-9);
        close(bounds.lower.ln(), all_green, 1e-9);
    }
    assert_eq!(weighted_upper(&trials, sums[0] * 1.000_001).upper.ln(), f64::NEG_INFINITY);
}

#[test]
fn broken_values_never_make_a_text_look_marked() {
    let good = Trial { weight: 1.0, rate: 0.5 };
    assert_eq!(weighted_upper(&[good; 50], f64::NAN).upper, LogProbability::ONE);
    assert_eq!(weighted_upper(&[good; 50], -1.0).upper, LogProbability::ONE);
    assert_eq!(weighted_upper(&[], 0.0).upper, LogProbability::ONE);
    assert_eq!(weighted_upper(&[], 1.0).upper.ln(), f64::NEG_INFINITY);
    for broken in [
        Trial { weight: f64::NAN, rate: 0.5 },
        Trial { weight: f64::INFINITY, rate: 0.5 },
        Trial { weight: 1.0, rate: f64::NAN },
        Trial { weight: 1.0, rate: 7.0 },
        Trial { weight: -3.0, rate: 0.5 },
    ] {
        let trials = [&[good; 5][..], &[broken]].concat();
        assert!(weighted_upper(&trials, 5.0).upper.ln() >= 5.0 * 0.5f64.ln() - 1e-12, "{broken:?}");
    }
}

#[test]
fn a_larger_sum_is_not_more_likely() {
    for (name, weight) in WEIGHTS {
        let trials = trials(150, weight, |r| 0.1 + 0.5 * r.next());
        let values = (0..60).map(|i| value_at(&trials, -2.0 + 0.2 * f64::from(i)));
        let bounds: Vec<TailBounds> = values.map(|x| weighted_upper(&trials, x)).collect();
        for pair in bounds.windows(2) {
            // Each bound is within the ratio of the truth, which falls.
            assert!(pair[1].lower <= pair[0].upper, "{name}");
            assert!(pair[1].upper.ln() <= pair[0].upper.ln() + 0.02, "{name}");
        }
    }
}

#[test]
fn simulation_agrees() {
    for (name, weight) in WEIGHTS {
        let trials = trials(120, weight, |r| 0.02 + 0.9 * r.next());
        let x = value_at(&trials, 2.0);
        let bounds = weighted_upper(&trials, x);
        let mut random = Random(11);
        let runs = 40_000;
        let mut reached = 0;
        for _ in 0..runs {
            let add = |sum, trial: &Trial| {
                if random.next() < trial.rate { sum + trial.weight } else { sum }
            };
            reached += u64::from(trials.iter().fold(0.0, add) >= x);
        }
        let (least, _) = binomial_interval(runs, bounds.lower.ln().exp(), 0.999);
        let (_, most) = binomial_interval(runs, bounds.upper.ln().exp(), 0.999);
        assert!((least..=most).contains(&reached), "{name}: {reached} not in {least}..{most}");
    }
}

#[test]
fn a_threshold_is_where_the_bound_reaches_alpha() {
    for (name, weight) in WEIGHTS {
        let trials = trials(80, weight, |r| 0.1 + 0.5 * r.next());
        let total: f64 = trials.iter().map(|trial| trial.weight).sum();
        for alpha in [0.01f64, 1e-5] {
            let alpha = LogProbability::from_ln(alpha.ln());
            let x = weighted_threshold(&trials, alpha).unwrap();
            assert!(weighted_upper(&trials, x).upper <= alpha, "{name}");
            assert!(weighted_upper(&trials, x - 2e-9 * total).upper > alpha, "{name}");
        }
        // Nothing is as rare as this.
        assert_eq!(weighted_threshold(&trials, LogProbability::from_ln(-1e6)), None);
    }
    assert_eq!(weighted_threshold(&[], LogProbability::from_ln(-1.0)), None);
}

#[test]
fn far_beyond_the_promise_the_bounds_still_hold() {
    let trials = trials(20_000, Random::next, |_| 0.5);
    let bounds = weighted_upper(&trials, value_at(&trials, 60.0));
    assert!(bounds.upper.log10() < -700.0 && bounds.lower < bounds.upper);
    assert!(ratio(&bounds) <= 1.02, "{}", ratio(&bounds));
}

#[test]
fn weights_that_span_many_orders_of_magnitude_are_exact() {
    let all = |weights: &[f64], rate: f64| -> Vec<Trial> {
        weights.iter().map(|&weight| Trial { weight, rate }).collect()
    };
    let spread = all(&[1.0, 1e-13, 1e-14, 1e-15], 0.25);
    assert_holds(&weighted_upper(&spread, 1.0 + 1e-13), 0.0625);
    // Rare successes of weights far apart: the chance that all succeed.
    let weights = [1.0, 1e-3, 1e-6, 1e-9, 1e-11, 1e-13];
    for rate in [1e-3, 1e-6, 1e-12] {
        let trials = all(&weights, rate);
        assert_holds(&weighted_upper(&trials, weights.iter().sum()), rate.powi(6));
    }
    // The chance itself is below the smallest double: neither certain nor impossible.
    let trials = all(&weights, 1e-70);
    let bounds = weighted_upper(&trials, weights.iter().sum());
    let exact = 6.0 * 1e-70f64.ln();
    assert!(bounds.upper.ln().is_finite() && bounds.upper.ln() >= exact * (1.0 + 1e-9));
    assert!(bounds.lower.ln() <= exact * (1.0 - 1e-12), "{bounds:?} {exact}");
}

#[test]
fn the_lower_bound_holds_at_the_distance_of_rounding() {
    // Sums of whole numbers are exact, so the tail is known on either side of the tolerance: each
    // of these falls short by a few units, where only the largest sum reaches for certain.
    let weights = [4_503_599_627_370_496.0, 3.0, 5.0, 9.0, 17.0, 2_251_799_813_685_249.0];
    let trials: Vec<Trial> = weights.iter().map(|&weight| Trial { weight, rate: 0.25 }).collect();
    let total: f64 = weights.iter().sum();
    let tolerance = 6.0 * f64::EPSILON * total;
    for short in 0..40 {
        let x = total - f64::from(short);
        let probability = |least: f64| -> f64 {
            (0..64u32)
                .filter(|set| {
                    let chosen = weights.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
                    chosen.map(|(_, weight)| weight).sum::<f64>() >= least
                })
                .map(|set| {
                    let green = set.count_ones();
                    0.25f64.powi(green.cast_signed()) * 0.75f64.powi(6 - green.cast_signed())
                })
                .sum()
        };
        let bounds = weighted_upper(&trials, x);
        let (lower, upper) = (bounds.lower.ln().exp(), bounds.upper.ln().exp());
        let defined = probability(x - tolerance);
        assert!(lower <= defined * (1.0 + 1e-12), "{short}: {lower} {defined}");
        assert!(upper >= probability(x) * (1.0 - 1e-12), "{short}");
    }
}

#[test]
fn rates_that_have_no_inverse_keep_the_bounds_apart() {
    let trials = |rate| [1.0, 2.0, 3.0].map(|weight| Trial { weight, rate });
    for rate in [5e-324, 1e-320, 5.6e-309] {
        let bounds = weighted_upper(&trials(rate), 6.0);
        assert_eq!(bounds.lower.ln(), f64::NEG_INFINITY);
        assert!(bounds.upper.ln() >= 3.0 * rate.ln() && bounds.upper.log10() < -300.0);
        let tail = ln_binomial_upper(10_000_000, 5_000_000, rate);
        assert!(tail.is_finite() && tail < -1e9, "{tail}");
    }
    // A certain part is found without them.
    let mixed = [Trial { weight: 1.0, rate: 0.5 }, Trial { weight: 2.0, rate: 1e-320 }];
    assert_holds(&weighted_upper(&mixed, 1.0), 0.5);
}
