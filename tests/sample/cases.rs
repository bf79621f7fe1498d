//! The field cases of samplers and of the mark's place: faults that public tools have had.

use std::collections::HashSet;
use std::sync::Arc;

use greenmark::Error;
use greenmark::sample::{Chain, Draw, History, SamplingOptions, Scratch};
use greenmark::scheme::{Action, Gate, Membership, Scope, Step};
use greenmark::token::{TokenId, TokenSet};
use serde_json::{Value, json};

use crate::support::{chain, close, draw, kept, ln, options, probabilities, trace, trace_with};

/// The refusal of options over `vocab` ids.
fn refusal(options: SamplingOptions, vocab: usize) -> Error {
    Chain::new(options, vocab, &[], Arc::new(TokenSet::empty(vocab))).expect_err("a refusal")
}

/// The refusal of a step.
fn failure(json: Value, logits: &[f32], end_ids: &[TokenId]) -> Error {
    let vocab = logits.len();
    let never_marked = Arc::new(TokenSet::empty(vocab));
    Chain::new(options(json), vocab, end_ids, never_marked)
        .expect("a valid chain")
        .step(logits, &History::new(&[]), Step::KEEP, draw(1), &mut Scratch::new())
        .expect_err("a refusal")
}

fn green(ids: &[TokenId], vocab: usize, delta: f32) -> Step {
    let set = TokenSet::from_ids(vocab, ids.iter().copied()).expect("ids");
    let membership = Membership::Set(Arc::new(set));
    let action = Action::Bias { membership, delta, scope: Scope::Survivors };
    Step { gate: Gate::Always, action }
}

/// The tokens of `seeds` draws of a chain.
fn tokens(options: Value, logits: &[f32], seeds: u64) -> Vec<TokenId> {
    let chain = chain(self::options(options), logits.len());
    let (history, mut scratch) = (History::new(&[]), Scratch::new());
    (0..seeds)
        .map(|seed| chain.step(logits, &history, Step::KEEP, draw(seed), &mut scratch))
        .map(|outcome| outcome.expect("a token").token)
        .collect()
}

#[test]
fn s01_top_p_that_lands_on_a_sum_keeps_no_token_more() {
    let logits = ln(&[0.3, 0.1, 0.1, 0.5]);
    for (p, expected) in
        [(0.8, vec![0, 3]), (0.7, vec![0, 3]), (0.5, vec![3]), (1.0, vec![0, 1, 2, 3])]
    {
        assert_eq!(kept(&trace(json!({ "top_p": p }), &logits)), expected, "p = {p}");
    }
    for seed in 0..20 {
        let chain = chain(options(json!({ "top_p": 0.5 })), 4);
        let trace = chain
            .trace(&ln(&[0.25; 4]), &History::new(&[]), Step::KEEP, draw(seed), &mut Scratch::new())
            .expect("a token");
        assert_eq!(kept(&trace), [0, 1]);
    }
}

#[test]
fn s03_top_p_zero_is_never_the_full_distribution() {
    let logits = ln(&[0.5, 0.3, 0.2]);
    assert!(tokens(json!({ "top_p": 0 }), &logits, 200).iter().all(|&token| token == 0));
    for p in [-0.1, 1.1, f64::NAN] {
        let options = SamplingOptions { top_p: Some(p), ..SamplingOptions::default() };
        let error = refusal(options, 3).to_string();
        assert!(error.contains("top_p") && error.contains("0 to 1"), "{error}");
    }
}

#[test]
fn s04_top_p_renormalises_over_what_top_k_left() {
    let logits = ln(&[0.5, 0.3, 0.2]);
    for (k, p, expected) in [(2, 0.6, vec![0]), (1, 0.8, vec![0]), (2, 0.9, vec![0, 1])] {
        let found = kept(&trace(json!({ "top_k": k, "top_p": p }), &logits));
        assert_eq!(found, expected, "k = {k}, p = {p}");
    }
}

#[test]
fn s06_temperature_zero_is_greedy_and_others_are_refused() {
    for temperature in [0.0, -0.0, 1e-6, 9.9e-6] {
        let found = tokens(json!({ "temperature": temperature }), &[1.0, 3.0, 2.0], 50);
        assert!(found.iter().all(|&token| token == 1), "{temperature}");
    }
    for temperature in [-1.0, -1e-9, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e39] {
        let options =
            SamplingOptions { temperature: Some(temperature), ..SamplingOptions::default() };
        let error = refusal(options, 3).to_string();
        assert!(error.contains("temperature") && error.contains("0 (greedy) or above"), "{error}");
    }
}

#[test]
fn s07_logits_that_are_no_numbers_are_an_error_with_counts() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    for (logits, nans, infinities) in [
        ([nan, 1.0, 2.0], 1, 0),
        ([1.0, nan, 2.0], 1, 0),
        ([1.0, 2.0, nan], 1, 0),
        ([inf, 1.0, 2.0], 0, 1),
        ([inf, nan, inf], 1, 2),
        ([nan; 3], 3, 0),
    ] {
        for temperature in [0, 1] {
            let chain = chain(options(json!({ "temperature": temperature })), 3);
            let draw = Draw { seed: 0, sample: 0, step: 17 };
            let found = chain
                .step(&logits, &History::new(&[]), Step::KEEP, draw, &mut Scratch::new())
                .expect_err("a refusal");
            let Error::NonFiniteLogits { step, nan, infinite, total } = found else {
                panic!("{found}")
            };
            assert_eq!((step, nan, infinite, total), (17, nans, infinities, 3));
        }
    }
}

#[test]
fn s08_an_empty_set_is_an_error_that_names_the_member() {
    let name = |error| match error {
        Error::NoTokenAllowed { member, step: 0 } => member,
        other => panic!("{other}"),
    };
    let logits = [1.0, 2.0, 3.0];
    let all = json!({ "logit_bias": { "0": "-inf", "1": "-inf", "2": "-inf" } });
    assert_eq!(name(failure(all, &logits, &[])), "logit_bias");
    let words = json!({ "bad_words": [[0], [1], [2]] });
    assert_eq!(name(failure(words, &logits, &[])), "bad_words");
    let end = json!({ "allowed_tokens": [1], "min_tokens": 3 });
    assert_eq!(name(failure(end.clone(), &logits, &[1])), "min_tokens");
    let greedy = json!({ "allowed_tokens": [1], "min_tokens": 3, "temperature": 0 });
    assert_eq!(name(failure(greedy, &logits, &[1])), "min_tokens");
    let vllm =
        json!({ "allowed_tokens": [1], "min_tokens": 3, "order": "min_tokens;allowed_tokens" });
    assert_eq!(name(failure(vllm, &logits, &[1])), "allowed_tokens");
    assert_eq!(name(failure(json!({}), &[f32::NEG_INFINITY; 3], &[])), "the model");
    // The best allowed token.
    for k in
        [json!({ "top_k": 1, "bad_words": [[2]] }), json!({ "temperature": 0, "bad_words": [[2]] })]
    {
        assert_eq!(tokens(k, &logits, 20), [1; 20]);
    }
}

#[test]
fn s09_the_order_of_temperature_and_min_p_is_data() {
    let logits = ln(&[0.6, 0.3, 0.1]);
    let request = json!({ "min_p": 0.2, "temperature": 2 });
    let first = trace(request.clone(), &logits);
    assert!(close(&probabilities(&first, 3), &[0.4727, 0.3343, 0.1930], 5e-5), "{first:?}");
    for order in ["llama.cpp", "min_p;temperature"] {
        let mut request = request.clone();
        request["order"] = json!(order);
        assert_eq!(kept(&trace(request, &logits)), [0, 1], "{order}");
    }
    assert_eq!(kept(&trace(json!({ "min_p": 0.5 }), &ln(&[0.5, 0.25, 0.25]))), [0, 1, 2]);
    let chain = chain(options(json!({ "min_p": 0.2, "temperature": 2, "order": "llama.cpp" })), 3);
    assert_eq!(chain.effective().order, ["min_p", "temperature", "watermark"]);
}

#[test]
fn s11_repetition_lowers_negative_logits_too() {
    let penalised = |penalty: f64| {
        let history = History::new(&[0, 1, 2, 1]);
        let logits = [-1.0, 0.5, 0.0];
        let found =
            trace_with(json!({ "repetition_penalty": penalty }), &logits, &history, Step::KEEP);
        found.stages.last().map_or(logits.to_vec(), |stage| stage.logits.clone())
    };
    assert_eq!(penalised(2.0), [-2.0, 0.25, 0.0]);
    assert_eq!(penalised(1.0), [-1.0, 0.5, 0.0]);
    assert_eq!(penalised(0.5), [-0.5, 1.0, 0.0]);
    for penalty in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let options =
            SamplingOptions { repetition_penalty: Some(penalty), ..SamplingOptions::default() };
        assert!(refusal(options, 3).to_string().contains("repetition_penalty"), "{penalty}");
    }
}

#[test]
fn s13_what_the_penalties_count() {
    let mut history = History::new(&[7, 7]);
    history.push(9);
    let logits = [1.0; 12];
    let run = |request: Value| {
        let trace = trace_with(request, &logits, &history, Step::KEEP);
        trace.stages.last().expect("a penalty").logits.clone()
    };
    let expect = |seven: f32, nine: f32| {
        let mut expected = logits.to_vec();
        (expected[7], expected[9]) = (seven, nine);
        expected
    };
    for order in ["transformers", "vllm"] {
        let counted = json!({ "frequency_penalty": 1, "presence_penalty": 0.5, "order": order });
        assert_eq!(run(counted), expect(1.0, -0.5), "{order}");
        let repeated = json!({ "repetition_penalty": 2, "order": order });
        assert_eq!(run(repeated), expect(0.5, 0.5), "{order}");
    }
    // llama.cpp: a window over prompt and output.
    let counted = json!({ "frequency_penalty": 1, "presence_penalty": 0.5, "order": "llama.cpp" });
    assert_eq!(run(counted), expect(1.0 - 2.5, -0.5));
    for (window, seven, nine) in [(2, -0.5, -0.5), (1, 1.0, -0.5), (0, 1.0, 1.0)] {
        let counted =
            json!({ "frequency_penalty": 1, "presence_penalty": 0.5, "penalty_last_n": window });
        assert_eq!(run(counted), expect(seven, nine), "window {window}");
    }
    // The window of 64.
    let mut long = History::new(&[7]);
    for step in 0..63 {
        long.push(if step % 2 == 0 { 1 } else { 2 });
    }
    let seven = |history: &History| {
        let request = json!({ "repetition_penalty": 2, "order": "llama.cpp" });
        trace_with(request, &logits, history, Step::KEEP).stages[0].logits[7]
    };
    assert_eq!(seven(&long), 0.5);
    long.push(1);
    assert_eq!(seven(&long), 1.0);
}

#[test]
fn s15_a_banned_token_never_appears_even_if_green() {
    let mut logits = vec![0.0; 400];
    logits[260] = 8.0;
    for bias in [json!(-100), json!("-inf")] {
        for temperature in [0, 1] {
            for step in [Step::KEEP, green(&[260], 400, 10.0)] {
                let request = json!({ "logit_bias": { "260": bias }, "temperature": temperature });
                let chain = chain(options(request), 400);
                let mut scratch = Scratch::new();
                for index in 0..200 {
                    let draw = Draw { seed: 3, sample: 0, step: index };
                    let history = History::new(&[]);
                    let outcome = chain.step(&logits, &history, step.clone(), draw, &mut scratch);
                    assert_ne!(outcome.expect("a token").token, 260);
                }
            }
        }
    }
}

#[test]
fn s16_top_k_off_and_beyond_the_vocabulary() {
    let logits = crate::support::logits(16, 49_152);
    let off = tokens(json!({}), &logits, 12);
    for k in [0, 49_152, 9_999_999, -1] {
        assert_eq!(tokens(json!({ "top_k": k }), &logits, 12), off, "{k}");
    }
    let greedy = tokens(json!({ "temperature": 0 }), &logits, 12);
    assert_eq!(tokens(json!({ "top_k": 1 }), &logits, 12), greedy);
    assert!(off.iter().collect::<HashSet<_>>().len() > 6);
    let two: HashSet<_> = tokens(json!({ "top_k": 2 }), &logits, 40).into_iter().collect();
    assert_eq!(two.len(), 2);
    let error = refusal(options(json!({ "top_k": -2 })), 10).to_string();
    assert!(error.contains("top_k") && error.contains("-2"), "{error}");
}

#[test]
fn s19_draws_of_neighbouring_seeds_and_steps_are_independent() {
    let mut logits = vec![-40.0; 4096];
    let winners = [5, 2000, 4090];
    for winner in winners {
        logits[winner] = 0.0;
    }
    let chain = chain(SamplingOptions::default(), 4096);
    let mut scratch = Scratch::new();
    let mut count = |draws: &mut dyn Iterator<Item = Draw>| {
        let mut counts = [0; 3];
        for draw in draws {
            let history = History::new(&[]);
            let outcome = chain.step(&logits, &history, Step::KEEP, draw, &mut scratch);
            let token = outcome.expect("a token").token as usize;
            counts[winners.iter().position(|&winner| winner == token).expect("a winner")] += 1;
        }
        counts
    };
    let by_seed = count(&mut (0..200).map(|seed| Draw { seed, sample: 0, step: 0 }));
    let by_step = count(&mut (0..200).map(|step| Draw { seed: 77, sample: 0, step }));
    let by_sample = count(&mut (0..200).map(|sample| Draw { seed: 77, sample, step: 3 }));
    for counts in [by_seed, by_step, by_sample] {
        assert!(counts.iter().all(|count| (47..=87).contains(count)), "{counts:?}");
    }
}

#[test]
fn s27_an_explicit_value_wins_over_the_models_a_zero_too() {
    let model = options(json!({ "temperature": 0.6, "top_p": 0.9 }));
    let effective = |options: SamplingOptions| chain(options, 10).effective().clone();
    let plain = effective(SamplingOptions::default().over(model.clone())).parameters;
    assert_eq!((plain.temperature, plain.top_p), (Some(0.6), Some(0.9)));
    let flag = options(json!({ "temperature": 0, "top_p": 0 }));
    let request = options(json!({ "temperature": 1, "min_p": 0.1 }));
    let zero = effective(flag.over(request.clone()).over(model.clone())).parameters;
    assert_eq!((zero.temperature, zero.top_p, zero.min_p), (Some(0.0), Some(0.0), Some(0.1)));
    let asked = effective(request.over(model)).parameters;
    assert_eq!((asked.temperature, asked.top_p, asked.top_k), (Some(1.0), Some(0.9), Some(0)));
}

#[test]
fn s34_the_temperature_divides_once_with_and_without_a_mark() {
    let logits = ln(&[0.8, 0.2]);
    for step in [Step::KEEP, green(&[1], 2, 0.0)] {
        for order in ["transformers", "vllm", "llama.cpp"] {
            let chain = chain(options(json!({ "temperature": 2, "order": order })), 2);
            let (history, mut scratch) = (History::new(&[]), Scratch::new());
            let zeros = (0..10_000)
                .filter(|&seed| {
                    let outcome =
                        chain.step(&logits, &history, step.clone(), draw(seed), &mut scratch);
                    outcome.expect("a token").token == 0
                })
                .count();
            assert!((6_520..=6_820).contains(&zeros), "{order}: {zeros}");
        }
    }
}

#[test]
fn w12_an_explicit_zero_is_not_a_missing_value() {
    let lower = options(json!({
        "temperature": 0.7, "top_k": 5, "top_p": 0.9, "min_tokens": 7, "repetition_penalty": 1.3,
        "presence_penalty": 1, "mirostat": { "mode": 2 }, "penalty_last_n": 64,
    }));
    let zeros = options(json!({
        "temperature": 0, "top_k": 0, "top_p": 0, "min_tokens": 0, "presence_penalty": 0,
        "mirostat": { "mode": 0 }, "penalty_last_n": 0,
    }));
    let layered = zeros.clone().over(lower);
    assert_eq!(layered.repetition_penalty, Some(1.3));
    assert_eq!(SamplingOptions { repetition_penalty: None, ..layered }, zeros);
}

#[test]
fn w15_delta_zero_changes_nothing_and_a_large_one_everything() {
    let vocab = 2_000;
    let list: Vec<TokenId> = (0..vocab).filter(|id| id % 3 == 0).collect();
    let chain = chain(options(json!({ "temperature": 0.9, "top_p": 0.95 })), 2_000);
    let run = |step: &Step| {
        let mut scratch = Scratch::new();
        (0..50u8)
            .map(|index| {
                let logits = crate::support::logits(index, 2_000);
                let draw = Draw { seed: 4, sample: 1, step: u64::from(index) };
                let outcome =
                    chain.step(&logits, &History::new(&[]), step.clone(), draw, &mut scratch);
                outcome.expect("a token")
            })
            .collect::<Vec<_>>()
    };
    let plain = run(&Step::KEEP);
    let zero = run(&green(&list, 2_000, 0.0));
    for (plain, zero) in plain.iter().zip(&zero) {
        let share = zero.green_mass.expect("a bias");
        assert!(share > 0.0 && share < 1.0);
        assert_eq!(*plain, greenmark::sample::Outcome { green_mass: None, ..*zero });
    }
    let tokens = |outcomes: &[greenmark::sample::Outcome]| {
        outcomes.iter().map(|outcome| outcome.token).collect::<Vec<_>>()
    };
    assert_ne!(tokens(&run(&green(&list, 2_000, 2.0))), tokens(&plain));
    assert!(tokens(&run(&green(&list, 2_000, 50.0))).iter().all(|id| id % 3 == 0));
}

#[test]
fn w16_the_bias_comes_last_on_survivors_only() {
    let mark = green(&[2], 3, 3.0);
    let last = trace_with(json!({ "top_k": 1 }), &[2.0, 1.0, 0.0], &History::new(&[]), mark);
    assert_eq!((last.outcome.token, last.outcome.green_mass), (0, Some(0.0)));
    let mark = green(&[0], 2, 2.0);
    let hot = trace_with(json!({ "temperature": 0.5 }), &[0.0, 0.0], &History::new(&[]), mark);
    assert!((hot.probabilities[&0] - 0.88080).abs() < 5e-6, "{hot:?}");
    assert_eq!(hot.outcome.green_mass, Some(0.5));
    assert_eq!(hot.stages.last().expect("a stage").processor, "watermark");
}
