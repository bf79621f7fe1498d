//! Values that papers, engines' manuals and hand calculation give.

use greenmark::sample::{History, SamplingOptions, XtcOptions};
use greenmark::scheme::Step;
use serde_json::json;

use crate::support::{close, kept, ln, probabilities, trace, trace_with};

const FIVE: [f32; 5] = [2.0, 1.0, 0.0, -1.0, -2.0];

#[test]
fn temperature_sharpens_and_flattens() {
    for (temperature, first, bits, by_top_p, by_min_p) in
        [(0.5, 0.8647, 0.661, 2, 2), (1.0, 0.6364, 1.443, 3, 3), (2.0, 0.4287, 2.012, 4, 5)]
    {
        let plain = trace(json!({ "temperature": temperature }), &FIVE);
        assert!((plain.probabilities[&0] - first).abs() < 5e-5, "{plain:?}");
        assert!((plain.outcome.max_probability - first).abs() < 5e-5);
        assert!((plain.outcome.entropy / std::f64::consts::LN_2 - bits).abs() < 5e-4);
        let nucleus = trace(json!({ "temperature": temperature, "top_p": 0.9 }), &FIVE);
        assert_eq!(kept(&nucleus).len(), by_top_p, "top-p at {temperature}");
        let min_p = trace(json!({ "temperature": temperature, "min_p": 0.1 }), &FIVE);
        assert_eq!(kept(&min_p).len(), by_min_p, "min-p at {temperature}");
    }
}

#[test]
fn truncation_before_or_after_the_temperature() {
    let first = trace(json!({ "temperature": 2, "top_p": 0.9 }), &FIVE);
    let expected = [0.4551, 0.2760, 0.1674, 0.1015, 0.0];
    assert!(close(&probabilities(&first, 5), &expected, 5e-5), "{first:?}");
    for order in ["llama.cpp", "top_p;temperature"] {
        let last = trace(json!({ "temperature": 2, "top_p": 0.9, "order": order }), &FIVE);
        let expected = [0.5065, 0.3072, 0.1863, 0.0, 0.0];
        assert!(close(&probabilities(&last, 5), &expected, 5e-5), "{order}: {last:?}");
    }
}

#[test]
fn a_long_flat_tail() {
    let mut distribution = vec![7e-5; 10_001];
    distribution[0] = 0.3;
    let logits = ln(&distribution);
    let nucleus = kept(&trace(json!({ "top_p": 0.9 }), &logits));
    assert_eq!(nucleus.len(), 1 + 8_572);
    // Ties go to the smaller ids.
    assert_eq!(nucleus, (0..8_573).collect::<Vec<_>>());
    assert_eq!(kept(&trace(json!({ "min_p": 0.1 }), &logits)), [0]);
}

#[test]
fn repetition_divides_a_positive_logit() {
    let history = History::new(&[0]);
    let trace = trace_with(json!({ "repetition_penalty": 1.2 }), &FIVE, &history, Step::KEEP);
    assert!((trace.stages[0].logits[0] - 1.667).abs() < 5e-4);
    assert!((trace.probabilities[&0] - 0.5564).abs() < 5e-5);
}

#[test]
fn frequency_counts_and_presence_does_not() {
    let mut history = History::new(&[0, 1]);
    for id in [2, 2, 2] {
        history.push(id);
    }
    let penalties = json!({ "frequency_penalty": 0.2, "presence_penalty": 0.5 });
    let trace = trace_with(penalties, &FIVE, &history, Step::KEEP);
    let expected = [2.0, 1.0, -1.1, -1.0, -2.0];
    let found = &trace.stages.last().expect("two stages").logits;
    assert!(close(&found.iter().map(|&l| f64::from(l)).collect::<Vec<_>>(), &expected, 1e-6));
}

/// Meister et al. 2022: the most likely token may be less typical than the others.
#[test]
fn typical_may_drop_the_most_likely_token() {
    let mut distribution = vec![0.4];
    distribution.extend([0.06; 10]);
    // H = 2.055, -ln .4 = 0.916, -ln .06 = 2.813: the ten are closer.
    let kept = kept(&trace(json!({ "typical_p": 0.5 }), &ln(&distribution)));
    assert_eq!(kept, (1..10).collect::<Vec<_>>());
}

/// Hewitt et al. 2022: eta = min(eps, sqrt(eps) exp(-H)).
#[test]
fn eta_lowers_the_threshold_where_the_entropy_is_high() {
    // 200 equally likely tokens and one of a fifth of their probability.
    let p = 1.0 / 200.2;
    let mut distribution = vec![p; 200];
    distribution.push(p / 5.0);
    let logits = ln(&distribution);
    // H = 5.30: sqrt(.01) * exp(-H) = 4.99e-4 < p / 5 = 9.99e-4 < .01.
    assert_eq!(kept(&trace(json!({ "eta_cutoff": 0.01 }), &logits)).len(), 201);
    // sqrt(.09) * exp(-H) = 1.5e-3: the last one goes.
    assert_eq!(kept(&trace(json!({ "eta_cutoff": 0.09 }), &logits)).len(), 200);
    // The fixed cutoff drops everything but the best, all of which tie.
    assert_eq!(kept(&trace(json!({ "epsilon_cutoff": 0.01 }), &logits)).len(), 200);
}

#[test]
fn top_n_sigma_does_not_depend_on_temperature() {
    // Deviations: mean 0, population variance 2, sigma 1.4142; 2 - sigma = .586.
    for temperature in [0.25, 1.0, 4.0] {
        for (n, expected) in [(1.0, 2), (1.5, 3), (3.0, 5)] {
            let trace = trace(json!({ "top_n_sigma": n, "temperature": temperature }), &FIVE);
            assert_eq!(kept(&trace).len(), expected, "n {n} at {temperature}");
        }
    }
    // Banned tokens do not widen sigma.
    let trace = trace(json!({ "top_n_sigma": 1 }), &[2.0, f32::NEG_INFINITY, 1.0, 0.0]);
    // sigma of {2, 1, 0} is .816: 1.18 is the lowest.
    assert_eq!(kept(&trace), [0]);
}

#[test]
fn xtc_spares_the_least_likely_of_the_likely() {
    let logits = ln(&[0.35, 0.3, 0.25, 0.06, 0.04]);
    let always = |threshold: f64| {
        kept(&trace(json!({ "xtc": { "probability": 1, "threshold": threshold } }), &logits))
    };
    assert_eq!(always(0.1), [2, 3, 4]);
    assert_eq!(always(0.3), [1, 2, 3, 4]);
    assert_eq!(always(0.35), [0, 1, 2, 3, 4]);
    assert_eq!(always(0.6), [0, 1, 2, 3, 4]);
    // Of equals the last one stays.
    let equal = trace(json!({ "xtc": { "probability": 1 } }), &[1.0, 1.0, 1.0]);
    assert_eq!(kept(&equal), [2]);
    assert_eq!(XtcOptions::new(1.0).threshold.to_bits(), 0.1f64.to_bits());
}

#[test]
fn xtc_acts_as_often_as_asked() {
    use greenmark::sample::{Draw, Scratch};
    let options = SamplingOptions { xtc: Some(XtcOptions::new(0.3)), ..SamplingOptions::default() };
    let chain = crate::support::chain(options, 2);
    let mut scratch = Scratch::new();
    let acted = (0..20_000)
        .filter(|&step| {
            let draw = Draw { seed: 5, sample: 2, step };
            let history = History::new(&[]);
            let outcome = chain.step(&[0.0, 0.0], &history, Step::KEEP, draw, &mut scratch);
            outcome.expect("a token").survivors == 1
        })
        .count();
    // 6000 with a standard deviation of 64.8.
    assert!((5_741..6_260).contains(&acted), "{acted}");
}

#[test]
fn dry_penalises_the_continuation_of_a_repetition() {
    // "1 2 3 4 1 2 3": the last three are a repetition, 4 would continue it.
    let history = History::new(&[1, 2, 3, 4, 1, 2, 3]);
    let penalty = |json: serde_json::Value| {
        let trace = trace_with(json!({ "dry": json }), &[0.0; 6], &history, Step::KEEP);
        trace.stages[0].logits.iter().map(|&l| -f64::from(l)).collect::<Vec<_>>()
    };
    // Length 3, allowed 2: 0.8 * 1.75^(3 - 2).
    assert!(close(&penalty(json!({ "multiplier": 0.8 })), &[0.0, 0.0, 0.0, 0.0, 1.4, 0.0], 1e-6));
    let longer = json!({ "multiplier": 1, "base": 2, "allowed_length": 1 });
    assert!(close(&penalty(longer), &[0.0, 0.0, 0.0, 0.0, 4.0, 0.0], 1e-6));
    // A repetition shorter than allowed is free.
    let short = json!({ "multiplier": 1, "allowed_length": 4 });
    assert!(close(&penalty(short), &[0.0; 6], 0.0));
    // It never reaches across a breaker, of one token or of two.
    for breakers in [json!([[2]]), json!([[1, 2]])] {
        let broken = json!({ "multiplier": 1, "base": 2, "allowed_length": 1, "sequence_breakers": breakers });
        assert!(close(&penalty(broken), &[0.0, 0.0, 0.0, 0.0, 1.0, 0.0], 1e-6));
    }
    let at_the_end = json!({ "multiplier": 1, "allowed_length": 1, "sequence_breakers": [[3]] });
    assert!(close(&penalty(at_the_end), &[0.0; 6], 0.0));
}

#[test]
fn no_ngram_appears_twice() {
    let history = History::new(&[1, 2, 3, 1, 2]);
    let banned = |size: usize| {
        let options = json!({ "no_repeat_ngram_size": size });
        let kept = kept(&trace_with(options, &[0.0; 5], &history, Step::KEEP));
        (0..5).filter(|id| !kept.contains(id)).collect::<Vec<_>>()
    };
    assert!(banned(0).is_empty());
    assert_eq!(banned(1), [1, 2, 3]);
    assert_eq!(banned(2), [3]);
    assert_eq!(banned(3), [3]);
    assert!(banned(4).is_empty());
    assert!(banned(60).is_empty());
}

#[test]
fn bad_words_ban_only_their_last_token() {
    let mut history = History::new(&[7, 1]);
    let options = json!({ "bad_words": [[0], [1, 2], [7, 1, 3], [9, 4]] });
    let found = kept(&trace_with(options.clone(), &[0.0; 10], &history, Step::KEEP));
    assert_eq!(found, [1, 4, 5, 6, 7, 8, 9]);
    history.push(9);
    let found = kept(&trace_with(options, &[0.0; 10], &history, Step::KEEP));
    assert_eq!(found, [1, 2, 3, 5, 6, 7, 8, 9]);
}
