//! The draw and the marks that go through it.

use std::sync::Arc;

use greenmark::Error;
use greenmark::prf::{ChaCha8Stream, DRAW_TAG, draw_seed, ln, neg_ln_uniform};
use greenmark::sample::{Chain, Draw, History, SamplingOptions, Scratch};
use greenmark::scheme::{Action, Gate, Membership, Scope, Step, Uniforms};
use greenmark::token::{TokenId, TokenSet};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{self, chain, draw, options, trace_with};
use crate::vectors;

fn race_under(stream: &ChaCha8Stream) -> Step {
    let uniforms = Uniforms::ChaCha8 { stream: stream.clone() };
    Step { gate: Gate::Always, action: Action::Race { uniforms } }
}

/// The definition, without shortcuts: the largest logit - ln E, ties to the smaller id.
fn naive(logits: &[f32], mut bits: impl FnMut(TokenId) -> u64) -> TokenId {
    let mut best = (0, f64::NEG_INFINITY);
    for (id, &logit) in (0..).zip(logits) {
        let score = f64::from(logit) - ln(neg_ln_uniform(bits(id)));
        if score > best.1 {
            best = (id, score);
        }
    }
    best.0
}

fn stream(draw: Draw) -> ChaCha8Stream {
    ChaCha8Stream::new(&draw_seed(DRAW_TAG, draw.seed, draw.sample, draw.step))
}

#[test]
fn golden_draws_and_their_second_places() {
    let file = vectors::read(&vectors::repository_folder().join("draw.json"));
    let draws = file["draws"].as_array().expect("draws");
    assert!(draws.len() >= 20);
    for case in draws {
        let draw = Draw {
            seed: case["seed"].as_str().expect("seed").parse().expect("u64"),
            sample: serde_json::from_value(case["sample"].clone()).expect("u32"),
            step: case["step"].as_u64().expect("u64"),
        };
        let logits: Vec<f32> = serde_json::from_value(case["logits"].clone()).expect("logits");
        let chosen = |options: SamplingOptions| {
            let chain = chain(options, logits.len());
            let history = History::new(&[]);
            let outcome = chain.step(&logits, &history, Step::KEEP, draw, &mut Scratch::new());
            u64::from(outcome.expect("a token").token)
        };
        assert_eq!(Some(chosen(SamplingOptions::default())), case["token"].as_u64());
        // Noise belongs to a token, so without the winner the second place wins.
        let banned = options(json!({ "bad_words": [[case["token"]]] }));
        assert_eq!(Some(chosen(banned)), case["second"].as_u64());
    }
}

#[test]
fn a_million_draws_follow_the_softmax() {
    let logits = [2.0, 1.0, 0.0, -1.0, -2.0];
    let chain = chain(SamplingOptions::default(), 5);
    let (history, mut scratch) = (History::new(&[]), Scratch::new());
    let mut counts = [0u32; 5];
    let draws = 1_000_000u32;
    for step in 0..u64::from(draws) {
        let draw = Draw { seed: 2026, sample: 0, step };
        let outcome = chain.step(&logits, &history, Step::KEEP, draw, &mut scratch);
        counts[outcome.expect("a token").token as usize] += 1;
    }
    let total: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
    for (logit, count) in logits.into_iter().zip(counts) {
        let p = f64::from(logit).exp() / total;
        let error = (p * (1.0 - p) / f64::from(draws)).sqrt();
        let found = f64::from(count) / f64::from(draws);
        assert!((found - p).abs() < 4.0 * error, "{logit}: {found} for {p}, error {error}");
    }
}

#[test]
fn a_keyed_race_follows_the_softmax_over_contexts() {
    let logits = [1.0, 0.0, -1.0];
    let chain = chain(SamplingOptions::default(), 3);
    let mut scratch = Scratch::new();
    let mut counts = [0u32; 3];
    for context in 0..60_000u32 {
        let mut seed = [7; 32];
        seed[..4].copy_from_slice(&context.to_le_bytes());
        let step = race_under(&ChaCha8Stream::new(&seed));
        let outcome = chain.step(&logits, &History::new(&[]), step, draw(0), &mut scratch);
        counts[outcome.expect("a token").token as usize] += 1;
    }
    let total: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
    for (logit, count) in logits.into_iter().zip(counts) {
        let p = f64::from(logit).exp() / total;
        let error = (p * (1.0 - p) / 60_000.0).sqrt();
        assert!((f64::from(count) / 60_000.0 - p).abs() < 4.0 * error, "{logit}: {count}");
    }
}

#[test]
fn ids_that_are_never_marked_keep_their_own_noise_and_get_no_bias() {
    let vocab = 4_000;
    let protected = [3, 1_700, 3_999];
    let never_marked = Arc::new(TokenSet::from_ids(vocab, protected).expect("ids"));
    let chain = Chain::new(SamplingOptions::default(), vocab, &[3], never_marked).expect("valid");
    let keyed = ChaCha8Stream::new(&[9; 32]);
    let mut scratch = Scratch::new();
    let mut protected_won = 0;
    for seed in 0..300 {
        let mut logits = vec![0.0; vocab];
        for id in protected {
            logits[id as usize] = 5.0;
        }
        let step = race_under(&keyed);
        let outcome = chain.step(&logits, &History::new(&[]), step, draw(seed), &mut scratch);
        let (mut own, mut keyed) = (stream(draw(seed)), keyed.clone());
        let expected = naive(&logits, |id| {
            if protected.contains(&id) {
                own.word_pair(id.into())
            } else {
                keyed.word_pair(id.into())
            }
        });
        assert_eq!(outcome.expect("a token").token, expected);
        protected_won += usize::from(protected.contains(&expected));
    }
    assert!(protected_won > 0 && protected_won < 100, "{protected_won}");

    let membership = Membership::ChaCha8 { stream: keyed, threshold: u32::MAX };
    let action = Action::Bias { membership, delta: 2.0, scope: Scope::Survivors };
    let step = Step { gate: Gate::Always, action };
    let trace = chain
        .trace(&vec![0.0; vocab], &History::new(&[]), step, draw(0), &mut scratch)
        .expect("a token");
    let logits = &trace.stages[0].logits;
    for (id, &logit) in (0..).zip(logits) {
        assert_eq!(logit, if protected.contains(&id) { 0.0 } else { 2.0 }, "id {id}");
    }
    let green = trace.outcome.green_mass.expect("a bias");
    assert!((green - 3_997.0 / 4_000.0).abs() < 1e-12);
}

#[test]
fn a_bias_evaluates_membership_at_the_tokens_own_word() {
    // All of a vocabulary, survivors that are many with gaps, and few.
    for (vocab, request) in [
        (5_000, json!({})),
        (5_000, json!({ "top_k": 100 })),
        (5_000, json!({ "top_k": 7 })),
        (70, json!({})),
    ] {
        let logits = support::logits(2, vocab);
        let stream = ChaCha8Stream::new(&[8; 32]);
        let threshold = 1 << 30;
        let membership = Membership::ChaCha8 { stream: stream.clone(), threshold };
        let action = Action::Bias { membership, delta: 1.5, scope: Scope::Survivors };
        let step = Step { gate: Gate::Always, action };
        let trace = trace_with(request, &logits, &History::new(&[]), step);
        let words = stream.words(vocab);
        let last = trace.stages.last().expect("the watermark");
        for (&id, &logit) in last.kept.iter().zip(&last.logits) {
            let delta = if words[id as usize] < threshold { 1.5 } else { 0.0 };
            assert_eq!(logit, logits[id as usize] + delta, "id {id}");
        }
    }
}

#[test]
fn a_bias_that_is_no_number_is_refused() {
    for delta in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let membership = Membership::Set(Arc::new(TokenSet::empty(2)));
        let action = Action::Bias { membership, delta, scope: Scope::Survivors };
        let step = Step { gate: Gate::Always, action };
        let chain = chain(SamplingOptions::default(), 2);
        let found = chain.step(&[0.0; 2], &History::new(&[]), step, draw(0), &mut Scratch::new());
        assert!(matches!(found, Err(Error::Parameter { name: "delta", .. })), "{delta}");
    }
}

#[test]
fn a_bias_can_be_bound_to_the_best() {
    let logits = [1.0, 0.0, 2.0, 1.0, 1.0, 3.0];
    // Ties to the smaller id.
    for (count, expected) in [
        (0, logits),
        (1, [1.0, 0.0, 2.0, 1.0, 1.0, 4.0]),
        (3, [2.0, 0.0, 3.0, 1.0, 1.0, 4.0]),
        (6, [2.0, 1.0, 3.0, 2.0, 2.0, 4.0]),
        (60, [2.0, 1.0, 3.0, 2.0, 2.0, 4.0]),
    ] {
        let membership = Membership::Set(Arc::new(TokenSet::from_ids(6, 0..6).expect("ids")));
        let action = Action::Bias { membership, delta: 1.0, scope: Scope::TopByScore(count) };
        let step = Step { gate: Gate::Always, action };
        let trace = trace_with(json!({}), &logits, &History::new(&[]), step);
        assert_eq!(trace.stages[0].logits, expected, "the {count} best");
    }
}

#[test]
fn gates_look_at_the_distribution_before_the_mark() {
    let logits = [1.0, 0.0, 0.0];
    // Probabilities .576, .212, .212; entropy .9753 nats.
    let marked = |gate: Gate, request: serde_json::Value| {
        let membership = Membership::Set(Arc::new(TokenSet::from_ids(3, [1]).expect("ids")));
        let action = Action::Bias { membership, delta: 5.0, scope: Scope::Survivors };
        let trace = trace_with(request, &logits, &History::new(&[]), Step { gate, action });
        assert_eq!(trace.probabilities[&1] > 0.9, trace.outcome.green_mass.is_some());
        trace.outcome.green_mass.is_some()
    };
    assert!(marked(Gate::EntropyAbove(0.97), json!({})));
    assert!(!marked(Gate::EntropyAbove(0.98), json!({})));
    assert!(marked(Gate::EntropyAbove(0.98), json!({ "temperature": 2 })));
    assert!(marked(Gate::MaxProbAtMost(0.58), json!({})));
    assert!(!marked(Gate::MaxProbAtMost(0.57), json!({})));
    assert!(marked(Gate::Always, json!({})));
}

#[test]
fn greedy_takes_bans_penalties_and_the_bias_and_nothing_random() {
    let logits = [3.0, 2.9, 1.0, 0.0];
    let history = History::new(&[0]);
    let greedy = |request: serde_json::Value, delta: f32| {
        let mut request = request;
        request["temperature"] = json!(0);
        let membership = Membership::Set(Arc::new(TokenSet::from_ids(4, [2]).expect("ids")));
        let action = Action::Bias { membership, delta, scope: Scope::Survivors };
        let step = Step { gate: Gate::Always, action };
        trace_with(request, &logits, &history, step).outcome
    };
    assert_eq!(greedy(json!({}), 0.0).token, 0);
    assert_eq!(greedy(json!({ "repetition_penalty": 1.1 }), 0.0).token, 1);
    assert_eq!(greedy(json!({ "bad_words": [[1]], "repetition_penalty": 9 }), 0.0).token, 2);
    assert_eq!(greedy(json!({}), 2.5).token, 2);
    // Truncation would have dropped the green token first.
    let request = json!({ "top_k": 1, "xtc": { "probability": 1 }, "mirostat": { "mode": 2 } });
    let outcome = greedy(request, 2.5);
    assert_eq!((outcome.token, outcome.survivors), (2, 4));
    // The log-probability is that of the marked distribution at temperature 1.
    let total = f64::exp(3.0) + f64::exp(2.9) + f64::exp(3.5) + 1.0;
    assert!((f64::from(outcome.logprob) - (3.5 - total.ln())).abs() < 1e-6);
    // Ties to the smaller id.
    let tie = trace_with(json!({ "temperature": 0 }), &[0.0, 1.0, 1.0], &history, Step::KEEP);
    assert_eq!((tie.outcome.token, tie.probabilities), (1, [(1, 1.0)].into()));
}

#[test]
fn a_race_is_refused_under_greedy_decoding() {
    let chain = chain(options(json!({ "temperature": 0 })), 2);
    let step = race_under(&ChaCha8Stream::new(&[1; 32]));
    let error = chain.step(&[0.0, 1.0], &History::new(&[]), step, draw(0), &mut Scratch::new());
    let Err(Error::Parameter { name: "temperature", .. }) = error else { panic!("{error:?}") };
}

#[test]
fn reported_log_probabilities() {
    let logits = [2.0, 1.0, 0.0, f32::NEG_INFINITY];
    let membership = Membership::Set(Arc::new(TokenSet::from_ids(4, [1]).expect("ids")));
    let action = Action::Bias { membership, delta: 1.0, scope: Scope::Survivors };
    let step = Step { gate: Gate::Always, action };
    let request = json!({ "temperature": 2, "top_k": 2, "bad_words": [[0]] });
    let outcome = trace_with(request, &logits, &History::new(&[]), step).outcome;
    let raw = (2f64.exp() + 1f64.exp() + 1.0).ln();
    // Before the mark .5 against 0, after it 1.5 against 0.
    let (before, after) = ((0.5f64.exp() + 1.0).ln(), (1.5f64.exp() + 1.0).ln());
    let (raw, surprisal, last) = match outcome.token {
        1 => (1.0 - raw, before - 0.5, 1.5 - after),
        2 => (0.0 - raw, before, -after),
        other => panic!("{other}"),
    };
    assert!((f64::from(outcome.raw_logprob) - raw).abs() < 1e-6);
    assert!((f64::from(outcome.logprob) - last).abs() < 1e-6);
    assert!((outcome.surprisal - surprisal).abs() < 1e-6);
    let p = 0.5f64.exp() / (0.5f64.exp() + 1.0);
    assert_eq!(outcome.survivors, 2);
    assert!((outcome.green_mass.expect("a bias") - p).abs() < 1e-7);
    assert!((outcome.max_probability - p).abs() < 1e-7);
    assert!((outcome.entropy + p * p.ln() + (1.0 - p) * (1.0 - p).ln()).abs() < 1e-6);
}

/// Many shapes of logits: flat, peaked, tied, huge, with bans.
fn any_logits() -> impl Strategy<Value = Vec<f32>> {
    let logit = prop_oneof![
        8 => -12f32..12.0,
        1 => Just(0.0f32),
        1 => Just(f32::NEG_INFINITY),
        1 => -3e7f32..3e7,
        1 => prop_oneof![Just(f32::MAX), Just(f32::MIN), Just(-0.0f32)],
    ];
    prop_oneof![
        proptest::collection::vec(-12f32..12.0, 1..300),
        proptest::collection::vec(logit, 1..300),
        proptest::collection::vec(-0.5f32..0.5, 1..3000),
        proptest::collection::vec((-20i8..20).prop_map(f32::from), 1..300),
    ]
    .prop_filter("a candidate", |logits| logits.iter().any(|&logit| logit > f32::NEG_INFINITY))
}

proptest! {
    #[test]
    fn the_winner_is_that_of_the_definition(logits in any_logits(), seed: u64, sample: u32, step: u64) {
        let draw = Draw { seed, sample, step };
        let chain = chain(SamplingOptions::default(), logits.len());
        let found = chain
            .step(&logits, &History::new(&[]), Step::KEEP, draw, &mut Scratch::new())
            .expect("a token");
        let mut own = stream(draw);
        prop_assert_eq!(found.token, naive(&logits, |id| own.word_pair(id.into())));
    }

    #[test]
    fn sparse_survivors_draw_the_same_noise(seed: u64, ids in proptest::collection::btree_set(0u32..20_000, 1..40)) {
        let allowed: Vec<TokenId> = ids.into_iter().collect();
        let logits = support::logits(3, 20_000);
        let request = json!({ "allowed_tokens": allowed });
        let chain = chain(options(request), 20_000);
        let found = chain
            .step(&logits, &History::new(&[]), Step::KEEP, draw(seed), &mut Scratch::new())
            .expect("a token");
        let mut masked = vec![f32::NEG_INFINITY; 20_000];
        for &id in &allowed {
            masked[id as usize] = logits[id as usize];
        }
        let mut own = stream(draw(seed));
        prop_assert_eq!(found.token, naive(&masked, |id| own.word_pair(id.into())));
    }
}
