//! Weights and chances against exact enumeration of green lists, closed forms and the figures of
//! the papers.

use greenmark::detect::entropy::{
    Chances, EntropyInput, EntropySource, GreedyStep, GreenListBias, Levels, Rule,
    StepDistribution, TokenUncertainty, WeightedTest, detectability, likelihood_ratio_weight,
    plain_power, power, tokens_needed,
};
use greenmark::detect::{Alpha, DetectOptions, WindowSearch};
use greenmark::document::Circumstances;
use greenmark::prf::ChaCha8Stream;
use greenmark::profile::SchemeParameters;
use greenmark::stats::ln_binomial_upper;
use greenmark::text::Normalizer;
use proptest::prelude::*;

use crate::sentences::detector;

const BIAS: GreenListBias = GreenListBias { gamma: 0.5, delta: 2.0 };

fn step(bias: GreenListBias, probabilities: &[f64]) -> StepDistribution {
    StepDistribution::new(bias, probabilities.iter().map(|&p| (p, true)))
}

/// a, b and the chance of green by summing over every list.
fn enumerate(bias: GreenListBias, p: &[f64], x: usize) -> (f64, f64, f64) {
    let GreenListBias { gamma, delta } = bias;
    let (mut a, mut b, mut green) = (0.0, 0.0, 0.0);
    for list in 0..1_u32 << p.len() {
        let is_green = |j: usize| list >> j & 1 == 1;
        let chance: f64 =
            (0..p.len()).map(|j| if is_green(j) { gamma } else { 1.0 - gamma }).product();
        let mass: f64 = (0..p.len()).filter(|&j| is_green(j)).map(|j| p[j]).sum();
        let z = 1.0 - mass + delta.exp() * mass;
        if is_green(x) {
            a += chance / gamma * delta.exp() / z;
        } else {
            b += chance / (1.0 - gamma) / z;
        }
        green += chance * delta.exp() * mass / z;
    }
    (a, b, green)
}

/// Both tests at the same alpha.
fn both(alpha: Alpha) -> Levels {
    Levels { plain: alpha, likelihood_ratio: alpha, min_scored: 1 }
}

fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} is not {expected}");
}

#[test]
fn the_weights_of_a_confident_step_are_those_of_the_issue() {
    // One token of probability .9, the rest spread over 10,000.
    let mut p = vec![1e-5; 10_000];
    p.push(0.9);
    let distribution = step(BIAS, &p);
    let heavy = distribution.chances(0.9);
    let tail = distribution.chances(1e-5);
    let weight = |chances: &Chances| likelihood_ratio_weight(BIAS, chances);
    close(weight(&heavy), 0.32, 0.005);
    close(weight(&tail), 2.00, 0.005);
    // By hand: a = e^2 / (1 + .95 c), b = 1 / (1 + .05 c), c = e^2 - 1.
    let c = 2.0_f64.exp_m1();
    close(weight(&heavy), ((c + 1.0) / (1.0 + 0.95 * c) * (1.0 + 0.05 * c)).ln(), 1e-4);
    // Twice the information, in nats, of the averaged weight.
    let information = |q: f64| q * (2.0 * q).ln() + (1.0 - q) * (2.0 * (1.0 - q)).ln();
    let a_b = |q: f64, share: f64| share * information(q);
    let averaged = information(heavy.step_green);
    let a = (c + 1.0) / (1.0 + 0.95 * c);
    let b = 1.0 / (1.0 + 0.05 * c);
    let share = 0.9 * (0.5 * a + 0.5 * b);
    let own = a_b(heavy.token_green, share) + a_b(tail.token_green, 1.0 - share);
    assert!((1.8..2.1).contains(&(own / averaged)), "{}", own / averaged);
}

proptest! {
    #[test]
    fn chances_are_those_of_every_list_enumerated(
        raw in prop::collection::vec(1e-6..1.0_f64, 1..10),
        power in 1..6_i32,
        gamma in 0.05..0.95_f64,
        delta in 0.0..12.0_f64,
    ) {
        // Powers make some tokens heavy and some light.
        let total: f64 = raw.iter().map(|p| p.powi(power)).sum();
        let p: Vec<f64> = raw.iter().map(|p| p.powi(power) / total).collect();
        let bias = GreenListBias { gamma, delta };
        let distribution = step(bias, &p);
        for x in 0..p.len() {
            let (a, b, green) = enumerate(bias, &p, x);
            let chances = distribution.chances(p[x]);
            let q = gamma * a / (gamma * a + (1.0 - gamma) * b);
            let tolerance = 1e-6;
            prop_assert!((chances.token_green - q).abs() < tolerance, "{} {q}", chances.token_green);
            prop_assert!((chances.step_green - green).abs() < tolerance);
            prop_assert!((distribution.green_chance() - green).abs() < tolerance);
            let weight = likelihood_ratio_weight(bias, &chances);
            prop_assert!((0.0..=delta).contains(&weight));
        }
    }
}

#[test]
fn heavy_tokens_are_exact_to_seven_digits() {
    let p = [0.4, 0.3, 0.15, 0.1, 0.05];
    for (gamma, delta) in [(0.5, 2.0), (0.25, 2.0), (0.1, 5.0), (0.5, 0.5), (0.5, 20.0)] {
        let bias = GreenListBias { gamma, delta };
        for x in 0..p.len() {
            let (a, b, green) = enumerate(bias, &p, x);
            let chances = step(bias, &p).chances(p[x]);
            let odds = chances.token_green / (1.0 - chances.token_green) * (1.0 - gamma) / gamma;
            close(odds / (a / b), 1.0, 1e-6);
            close(chances.step_green, green, 1e-6);
        }
    }
}

/// E[1 / (k + c G)] with every token in the product, on nodes twice as dense.
fn integral(bias: GreenListBias, p: &[f64], k: f64) -> f64 {
    let GreenListBias { gamma, delta } = bias;
    let step = 0.25;
    (-112..=15)
        .map(|node| {
            let t = (f64::from(node) * step).exp();
            let factor = |p: &f64| (gamma * (-t * delta.exp_m1() * p).exp_m1()).ln_1p();
            step * t * (p.iter().map(factor).sum::<f64>() - k * t).exp()
        })
        .sum()
}

#[test]
fn light_tokens_in_bins_change_nothing_that_matters() {
    for exponent in [0.7, 1.0, 1.5] {
        let total: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-exponent)).sum();
        let p: Vec<f64> = (1..=1000).map(|rank| f64::from(rank).powf(-exponent) / total).collect();
        for (gamma, delta) in [(0.5, 2.0), (0.25, 4.0), (0.1, 8.0)] {
            let bias = GreenListBias { gamma, delta };
            for x in [0, 30, 700] {
                let mut others = p.clone();
                others.swap_remove(x);
                let c = bias.delta.exp_m1();
                let a = (c + 1.0) * integral(bias, &others, 1.0 + c * p[x]);
                let b = integral(bias, &others, 1.0);
                let chances = step(bias, &p).chances(p[x]);
                close(chances.token_green, gamma * a / (gamma * a + (1.0 - gamma) * b), 1e-4);
                let green = (c + 1.0) / c * (1.0 - integral(bias, &p, 1.0));
                close(chances.step_green, green, 1e-4);
            }
        }
    }
}

#[test]
fn a_broad_distribution_agrees_with_drawn_lists() {
    // Zipf over 2,000 tokens: most of the mass is in the tail that is taken as equal tokens.
    let total: f64 = (1..=2000).map(|rank| 1.0 / f64::from(rank)).sum();
    let p: Vec<f64> = (1..=2000).map(|rank| 1.0 / f64::from(rank) / total).collect();
    for (x, bias) in [(0, BIAS), (1500, GreenListBias { gamma: 0.25, delta: 4.0 })] {
        let chances = step(bias, &p).chances(p[x]);
        let mut stream = ChaCha8Stream::new(&[9; 32]);
        let (mut sums, mut squares) = ([0.0; 2], [0.0; 2]);
        let draws = 4000_u32;
        let threshold = (bias.gamma * 4_294_967_296.0) as u32;
        for draw in 0..draws {
            let others: f64 = (0..2000)
                .filter(|&j| j != x && stream.word(u64::from(draw) * 2000 + j as u64) < threshold)
                .map(|j| p[j])
                .sum();
            let z = |mass: f64| 1.0 + bias.delta.exp_m1() * mass;
            for (slot, value) in
                [bias.delta.exp() / z(others + p[x]), 1.0 / z(others)].into_iter().enumerate()
            {
                sums[slot] += value;
                squares[slot] += value * value;
            }
        }
        let n = f64::from(draws);
        let [a, b] = sums.map(|sum| sum / n);
        let relative = |slot: usize| {
            let mean = sums[slot] / n;
            (squares[slot] / n / mean / mean - 1.0).sqrt() / n.sqrt()
        };
        let odds =
            chances.token_green / (1.0 - chances.token_green) * (1.0 - bias.gamma) / bias.gamma;
        // Both estimates come from the same lists; four standard errors of each bound their ratio.
        close(odds / (a / b), 1.0, 4.0 * (relative(0) + relative(1)));
    }
}

#[test]
fn tokens_that_are_never_marked_take_no_part() {
    // Half of the mass cannot be green: the other half is one token.
    let distribution = StepDistribution::new(BIAS, [(0.5, true), (0.5, false)].into_iter());
    let c = 2.0_f64.exp_m1();
    let green = 0.5 * (c + 1.0) * 0.5 / (1.0 + 0.5 * c);
    close(distribution.green_chance(), green, 1e-7);
    // a = e^2 / (1 + c/2), b = 1.
    let weight = likelihood_ratio_weight(BIAS, &distribution.chances(0.5));
    close(weight, ((c + 1.0) / (1.0 + 0.5 * c)).ln(), 1e-6);
}

#[test]
fn extremes_give_numbers() {
    for (gamma, delta) in [(0.5, 0.0), (0.5, 1e-12), (0.5, 1000.0), (1e-9, 2.0), (0.999_999, 2.0)] {
        let bias = GreenListBias { gamma, delta };
        for p in [vec![1.0], vec![0.5, 0.5], vec![1e-4; 10_000], vec![1.0, 1e-14]] {
            let distribution = step(bias, &p);
            for probability in [p[0], p[p.len() - 1], 0.0, 1e-300] {
                let chances = distribution.chances(probability);
                for value in [chances.step_green, chances.token_green, chances.spike_entropy] {
                    assert!((0.0..=1.0 + 1e-9).contains(&value), "{bias:?} {probability} {value}");
                }
                let weight = likelihood_ratio_weight(bias, &chances);
                assert!((0.0..=delta.min(50.0)).contains(&weight), "{bias:?} {weight}");
            }
        }
    }
    // A token that the distribution cannot give speaks for nothing.
    assert_eq!(likelihood_ratio_weight(BIAS, &step(BIAS, &[0.5, 0.5]).chances(0.0)), 0.0);
    // A certain token cannot carry anything.
    close(likelihood_ratio_weight(BIAS, &step(BIAS, &[1.0]).chances(1.0)), 0.0, 1e-6);
}

#[test]
fn spike_entropy_is_the_published_sum() {
    // Kirchenbauer et al. 2023: z = (1 - g)(e^d - 1) / (1 + g (e^d - 1)); at gamma .5, delta 2
    // z = .5 * 6.38906 / 4.19453.
    close(BIAS.spike_modulus(), 0.761_594_155_955_765, 1e-12);
    let z = BIAS.spike_modulus();
    let distribution = step(BIAS, &[0.7, 0.2, 0.1]);
    let expected = 0.7 / (1.0 + 0.7 * z) + 0.2 / (1.0 + 0.2 * z) + 0.1 / (1.0 + 0.1 * z);
    close(distribution.spike_entropy(), expected, 1e-15);
    // Theorem 4.2: the chance of green is at least the bound from spike entropy.
    for p in [vec![0.7, 0.2, 0.1], vec![0.01; 100], vec![0.97, 0.03], vec![1.0]] {
        let distribution = step(BIAS, &p);
        let bound = BIAS.green_chance_at_least(distribution.spike_entropy());
        assert!(distribution.green_chance() >= bound - 1e-9, "{p:?}");
    }
}

#[test]
fn greedy_chances_are_those_of_every_list_enumerated() {
    let logits = [3.0, 2.5, 2.2, 0.5, -1.0];
    let (gamma, delta) = (0.3, 1.0);
    let bias = GreenListBias { gamma, delta };
    let (mut shown, mut shown_green, mut green) = ([0.0; 5], [0.0; 5], 0.0);
    for list in 0..32_u32 {
        let is_green = |j: usize| list >> j & 1 == 1;
        let chance: f64 = (0..5).map(|j| if is_green(j) { gamma } else { 1.0 - gamma }).product();
        let value = |j: usize| logits[j] + if is_green(j) { delta } else { 0.0 };
        let best = (0..5).max_by(|&i, &j| value(i).total_cmp(&value(j))).unwrap();
        shown[best] += chance;
        if is_green(best) {
            shown_green[best] += chance;
            green += chance;
        }
    }
    for x in 0..3 {
        let step = GreedyStep { bias, within_reach: 3, better: Some(x) };
        close(step.green_chance(), green, 1e-12);
        close(step.token_green(), shown_green[x] / shown[x], 1e-12);
    }
    let outside = GreedyStep { bias, within_reach: 3, better: None };
    assert_eq!(outside.token_green(), gamma);
}

#[expect(clippy::unnecessary_wraps, reason = "an entry of a text's list")]
fn uncertain(entropy: f64, p: &[f64], x: usize) -> Option<TokenUncertainty> {
    Some(TokenUncertainty { entropy, chances: Some(step(BIAS, p).chances(p[x])) })
}

#[test]
fn each_rule_counts_what_its_paper_says() {
    let p = [0.5, 0.3, 0.2];
    let sure = [0.999, 0.001];
    let tokens = [uncertain(1.03, &p, 0), None, uncertain(0.008, &sure, 0), uncertain(0.91, &p, 2)];
    let green = [true, true, true, false];
    let test = |rule| WeightedTest::new(rule, BIAS, &green, &tokens).unwrap();

    // SWEET: a count of the tokens above .9 nats, with the exact binomial tail.
    let sweet = test(Rule::Sweet);
    assert_eq!((sweet.scored, sweet.low_entropy, sweet.unaligned), (2, 1, 1));
    assert_eq!((sweet.statistic, sweet.green), (1.0, 1));
    close(sweet.p.ln(), ln_binomial_upper(2, 1, 0.5), 1e-12);
    close(sweet.p_above(BIAS).ln(), ln_binomial_upper(2, 2, 0.5), 1e-12);

    // EWD: spike entropy minus the smallest, here that of the sure token.
    let spike = |p: &[f64]| step(BIAS, p).spike_entropy();
    let ewd = test(Rule::Ewd);
    assert_eq!((ewd.scored, ewd.low_entropy, ewd.unaligned), (2, 1, 1));
    close(ewd.total, 2.0 * (spike(&p) - spike(&sure)), 1e-12);
    let (sum, squares) = (ewd.statistic, ewd.squares);
    close(ewd.z.unwrap(), (sum - 0.5 * ewd.total) / (0.25 * squares).sqrt(), 1e-12);

    // The averaged weight is the same for every token of a step, the likelihood ratio is not.
    let averaged = test(Rule::StepAverage);
    let q = step(BIAS, &p).green_chance();
    let sure_q = step(BIAS, &sure).green_chance();
    let odds = |q: f64| (q / (1.0 - q)).ln();
    close(averaged.total, 2.0 * odds(q) + odds(sure_q), 1e-9);
    let ratio = test(Rule::LikelihoodRatio);
    let own = |p: &[f64], x: usize| odds(step(BIAS, p).chances(p[x]).token_green);
    close(ratio.total, own(&p, 0) + own(&sure, 0) + own(&p, 2), 1e-9);
    close(ratio.statistic, own(&p, 0) + own(&sure, 0), 1e-9);
    assert!(own(&p, 2) > own(&p, 0), "a lighter token says more");

    // Where nothing but entropies is known, only SWEET speaks.
    let bare = [Some(TokenUncertainty { entropy: 1.0, chances: None })];
    assert!(WeightedTest::new(Rule::Sweet, BIAS, &[true], &bare).is_some());
    for rule in [Rule::Ewd, Rule::StepAverage, Rule::LikelihoodRatio] {
        assert_eq!(WeightedTest::new(rule, BIAS, &[true], &bare), None);
    }
}

#[test]
fn the_p_of_a_weighted_test_is_the_tail_of_its_sum() {
    // Three tokens of different weight: eight sums, each with chance 1/8.
    let tokens = [
        uncertain(1.0, &[0.5, 0.5], 0),
        uncertain(1.0, &[0.8, 0.2], 1),
        uncertain(1.0, &[0.25; 4], 1),
    ];
    let weights: Vec<f64> = tokens
        .iter()
        .map(|t| likelihood_ratio_weight(BIAS, &t.unwrap().chances.unwrap()))
        .collect();
    for list in 0..8_u32 {
        let green: Vec<bool> = (0..3).map(|j| list >> j & 1 == 1).collect();
        let sum = |list: u32| -> f64 {
            (0..3).filter(|j| list >> j & 1 == 1).map(|j: u32| weights[j as usize]).sum()
        };
        let tail = (0..8).filter(|&other| sum(other) >= sum(list) - 1e-12).count() as f64 / 8.0;
        let test = WeightedTest::new(Rule::LikelihoodRatio, BIAS, &green, &tokens).unwrap();
        let p = test.p.ln().exp();
        assert!((tail..=tail * 1.02).contains(&(p * (1.0 + 1e-12))), "{p} {tail}");
        let above = (0..8).filter(|&other| sum(other) > sum(list) + 1e-12).count() as f64 / 8.0;
        close(test.p_above(BIAS).ln().exp(), above, 0.02 * above + 1e-300);
    }
}

/// A uniform number on (0, 1).
struct Uniform(ChaCha8Stream, u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.1 += 1;
        (f64::from(self.0.word(self.1)) + 0.5) / 4_294_967_296.0
    }
}

/// Draws a token from a step under a random list: its place and whether it is green.
fn draw(bias: GreenListBias, p: &[f64], uniform: &mut Uniform) -> (usize, bool) {
    let green: Vec<bool> = p.iter().map(|_| uniform.next() < bias.gamma).collect();
    let weight = |j: usize| p[j] * if green[j] { bias.delta.exp() } else { 1.0 };
    let total: f64 = (0..p.len()).map(weight).sum();
    let mut rest = uniform.next() * total;
    for (j, &is_green) in green.iter().enumerate() {
        rest -= weight(j);
        if rest <= 0.0 {
            return (j, is_green);
        }
    }
    (p.len() - 1, green[p.len() - 1])
}

const STEPS: [&[f64]; 4] =
    [&[0.97, 0.02, 0.01], &[0.6, 0.2, 0.1, 0.1], &[0.2; 5], &[0.9, 0.05, 0.03, 0.02]];

#[test]
fn power_and_tokens_needed_agree_with_simulation_within_two_points() {
    let mut uniform = Uniform(ChaCha8Stream::new(&[4; 32]), 0);
    for (bias, length, alpha) in [
        (BIAS, 60, 1e-2),
        (BIAS, 200, 3.167e-5),
        (GreenListBias { gamma: 0.25, delta: 2.0 }, 100, 1e-3),
    ] {
        let alpha = Alpha::new(alpha).unwrap();
        let rate = STEPS.iter().map(|p| step(bias, p).green_chance()).sum::<f64>() / 4.0;
        let expected = plain_power(bias.gamma, rate, length, alpha);
        let runs = 4000;
        let (mut found, mut z) = (0, 0.0);
        for _ in 0..runs {
            let green = (0..length)
                .filter(|_| {
                    let place = (uniform.next() * 4.0) as usize;
                    draw(bias, STEPS[place], &mut uniform).1
                })
                .count() as u64;
            found += u64::from(ln_binomial_upper(length, green, bias.gamma) <= alpha.log().ln());
            let n = length as f64;
            z += (green as f64 - n * bias.gamma) / (n * bias.gamma * (1.0 - bias.gamma)).sqrt();
        }
        let rate_found = found as f64 / f64::from(runs);
        // Two points, and 99.9% of the simulation's own error.
        let error = 3.3 * (0.25 / f64::from(runs)).sqrt();
        close(rate_found, expected.power, 0.02 + error);
        assert!((0.03..0.99).contains(&expected.power), "{}", expected.power);
        close(z / f64::from(runs), expected.z, 0.1);

        let needed = tokens_needed(bias.gamma, rate, 0.9, alpha).unwrap();
        assert!(plain_power(bias.gamma, rate, needed, alpha).power >= 0.9);
        assert!(plain_power(bias.gamma, rate, needed - 1, alpha).power < 0.9);
    }
    let alpha = Alpha::default();
    assert_eq!(tokens_needed(0.5, 0.5, 0.9, alpha), None);
    assert_eq!(plain_power(0.5, 0.9, 0, alpha).power, 0.0);
    assert_eq!(plain_power(0.5, 1.0, 14, alpha).power, 0.0, "14 greens are not rare enough");
    close(plain_power(0.5, 1.0, 15, alpha).power, 1.0, 1e-12);
}

#[test]
fn the_likelihood_ratio_finds_what_it_promises_and_accuses_at_its_level() {
    let mut uniform = Uniform(ChaCha8Stream::new(&[8; 32]), 0);
    let alpha = Alpha::new(0.01).unwrap();
    let (mut promised, mut found, mut accused, mut plain_found) = (0.0, 0, 0, 0);
    let runs = 800;
    for _ in 0..runs {
        let drawn: Vec<(usize, usize, bool)> = (0..48)
            .map(|place| {
                let place = place % 4;
                let (x, green) = draw(BIAS, STEPS[place], &mut uniform);
                (place, x, green)
            })
            .collect();
        let tokens: Vec<_> =
            drawn.iter().map(|&(place, x, _)| uncertain(1.0, STEPS[place], x)).collect();
        let green: Vec<bool> = drawn.iter().map(|&(_, _, green)| green).collect();
        let is_found = |test: &WeightedTest| u32::from(test.p <= alpha.log());
        let test = |green: &[bool]| {
            WeightedTest::new(Rule::LikelihoodRatio, BIAS, green, &tokens).unwrap()
        };
        found += is_found(&test(&green));
        // The same text under a key that did not write it.
        let coins: Vec<bool> = green.iter().map(|_| uniform.next() < 0.5).collect();
        accused += is_found(&test(&coins));
        let greens = green.iter().filter(|green| **green).count() as u64;
        plain_found += u32::from(ln_binomial_upper(48, greens, 0.5) <= alpha.log().ln());
        promised += detectability(BIAS, &tokens, both(alpha)).unwrap().likelihood_ratio.power;
    }
    let share = |count: u32| f64::from(count) / f64::from(runs);
    println!(
        "found {:.3}, promised {:.3}, plain {:.3}, accused {:.4}",
        share(found),
        promised / f64::from(runs),
        share(plain_found),
        share(accused)
    );
    let error = 3.3 * (0.25 / f64::from(runs)).sqrt();
    close(share(found), promised / f64::from(runs), 0.02 + error);
    // The 99.9% quantile of Binomial(800, .01).
    assert!(accused <= 18, "{accused}");
    assert!(share(found) > share(plain_found) + 0.05, "{found} {plain_found}");
}

#[test]
fn power_by_hand() {
    // Two tokens of weight 1, alpha .3: both green (chance 1/4 by chance) is the only rare event.
    let alpha = Alpha::new(0.3).unwrap();
    let found = power(0.5, &[(1.0, 0.8), (1.0, 0.6), (0.0, 0.9)], alpha);
    close(found.power, 0.48, 1e-3);
    close(found.z, 0.4 / 0.5_f64.sqrt(), 1e-12);
    assert_eq!(power(0.5, &[], alpha).power, 0.0);

    let tokens = [uncertain(1.0, STEPS[2], 0), uncertain(0.1, STEPS[0], 0), None];
    let found = detectability(BIAS, &tokens, both(alpha)).unwrap();
    assert_eq!((found.scored, found.carrying), (3, 1));
    assert!(found.sentence().starts_with("1 of 3 scored tokens could carry a mark"));
    assert_eq!(detectability(BIAS, &[None], both(alpha)), None);
}

#[test]
fn the_search_for_a_length_goes_up_to_ten_million() {
    // Normal approximation: ((4 + 1.2816) / (2 (rate - .5)))^2 is 9.0 million, above 2^23.
    let alpha = Alpha::default();
    let needed = tokens_needed(0.5, 0.500_88, 0.9, alpha).unwrap();
    assert!((8_900_000..9_100_000).contains(&needed), "{needed}");
    // And 11.2 million.
    assert_eq!(tokens_needed(0.5, 0.500_79, 0.9, alpha), None);
}

#[test]
fn the_power_of_a_report_is_at_the_alpha_that_each_deciding_test_is_left_with() {
    let text = "The keeper climbed\r\nthe tower every evening and lit the lamp of the house.";
    let token = uncertain(1.0, STEPS[1], 0);
    // Looks: as given and with other newlines. Families: whole, likelihood ratio and windows.
    for (normalizers, windows, plain_pays, ratio_pays) in [
        (&[][..], WindowSearch::Off, 2_u32, 2_u32),
        (&[Normalizer::Newlines][..], WindowSearch::Off, 4, 2),
        (&[Normalizer::Newlines][..], WindowSearch::On, 6, 3),
    ] {
        // So lenient that few tokens have a power to speak of.
        let options =
            DetectOptions { alpha: Alpha::new(0.3).unwrap(), windows, ..DetectOptions::default() };
        let detector = detector(SchemeParameters::default(), options);
        let tokens = vec![token; detector.pieces(text).unwrap().len()];
        let source = EntropySource::Model("m".to_owned());
        let circumstances = Circumstances {
            normalizers,
            entropy: Some(EntropyInput { source, sampling: None, tokens }),
            ..Circumstances::default()
        };
        let report = detector.text(text, &circumstances).unwrap();
        let found = report.entropy.unwrap().detectability.unwrap();
        close(found.plain.alpha, 0.3 / f64::from(plain_pays), 1e-12);
        close(found.likelihood_ratio.alpha, 0.3 / f64::from(ratio_pays), 1e-12);
        let bias = GreenListBias::of(&SchemeParameters::default()).unwrap();
        let scored = vec![token; usize::try_from(found.scored).unwrap()];
        let levels = Levels {
            plain: options.alpha.shared(u64::from(plain_pays)),
            likelihood_ratio: options.alpha.shared(u64::from(ratio_pays)),
            min_scored: options.min_scored,
        };
        let expected = detectability(bias, &scored, levels).unwrap();
        assert_eq!(
            (found.plain, found.likelihood_ratio),
            (expected.plain, expected.likelihood_ratio)
        );
        assert!(found.plain.power > 0.0 && found.likelihood_ratio.power > 0.0);
    }
}
