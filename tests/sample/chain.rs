//! The chain as a whole: options, orders, what is in force, history and errors.

use std::sync::Arc;

use greenmark::sample::{
    Bias, Chain, Decoding, Effective, History, MirostatMode, MirostatOptions, Order, PenaltyScope,
    Preset, SamplingOptions, Scratch,
};
use greenmark::scheme::Step;
use greenmark::token::TokenSet;
use greenmark::{Error, ErrorKind};
use serde_json::{Value, json};

use crate::golden::all_members;
use crate::support::{chain, draw, kept, ln, options, trace, trace_with};

fn refusal(json: Value, vocab: usize) -> String {
    let never_marked = Arc::new(TokenSet::empty(vocab));
    let error = Chain::new(options(json), vocab, &[], never_marked).expect_err("a refusal");
    assert_eq!(error.kind(), ErrorKind::Input);
    error.to_string()
}

#[test]
fn options_survive_json_and_refuse_unknown_fields() {
    let mut request = all_members();
    request["mirostat"] = json!({ "mode": 1, "tau": 4, "eta": 0.2 });
    request["order"] = json!("llama.cpp");
    let given = options(request);
    let text = serde_json::to_string(&given).expect("JSON");
    assert_eq!(serde_json::from_str::<SamplingOptions>(&text).expect("options"), given);
    assert!(text.contains(r#""11":"-inf""#), "{text}");
    assert_eq!(serde_json::to_string(&SamplingOptions::default()).expect("JSON"), "{}");
    for wrong in [
        r#"{"temperatur":1}"#,
        r#"{"dry":{"multiplier":1,"bse":2}}"#,
        r#"{"xtc":{"probability":1,"treshold":2}}"#,
        r#"{"mirostat":{"mode":3}}"#,
        r#"{"mirostat":{"mode":1,"tua":2}}"#,
        r#"{"top_k":1.5}"#,
        r#"{"top_k":5,"top_k":6}"#,
        r#"{"logit_bias":{"1":"inf"}}"#,
        r#"{"logit_bias":{"1":"nan"}}"#,
        r#"{"logit_bias":{"x":1}}"#,
        r#"{"order":"nonsense"}"#,
    ] {
        let error = serde_json::from_str::<SamplingOptions>(wrong);
        assert!(error.is_err(), "{wrong}");
    }
}

#[test]
fn a_bias_of_the_command_line() {
    let parsed = |text: &str| Bias::parse_pair(text).map(|(id, bias)| (id, bias.0)).ok();
    assert_eq!(parsed("260=-100"), Some((260, -100.0)));
    assert_eq!(parsed("260=-inf"), Some((260, f32::NEG_INFINITY)));
    assert_eq!(parsed("0=1.5"), Some((0, 1.5)));
    for wrong in ["260", "260=", "=1", "x=1", "1=inf", "1=nan", "-1=2", "1=1e99"] {
        let error = Bias::parse_pair(wrong).expect_err(wrong).to_string();
        assert!(error.contains("logit_bias") && error.contains(wrong), "{error}");
    }
}

#[test]
fn every_range_is_checked_once_and_named() {
    for (request, name) in [
        (json!({ "min_p": 1.5 }), "min_p"),
        (json!({ "min_p": -0.1 }), "min_p"),
        (json!({ "typical_p": 2 }), "typical_p"),
        (json!({ "epsilon_cutoff": -1 }), "epsilon_cutoff"),
        (json!({ "eta_cutoff": 1.1 }), "eta_cutoff"),
        (json!({ "top_n_sigma": -1 }), "top_n_sigma"),
        (json!({ "presence_penalty": 1e39 }), "presence_penalty"),
        (json!({ "frequency_penalty": -1e39 }), "frequency_penalty"),
        (json!({ "repetition_penalty": 1e-60 }), "repetition_penalty"),
        (json!({ "dry": { "multiplier": -1 } }), "dry.multiplier"),
        (json!({ "dry": { "multiplier": 1, "base": 0.5 } }), "dry.base"),
        (json!({ "dry": { "multiplier": 1, "allowed_length": 0 } }), "dry.allowed_length"),
        (json!({ "dry": { "multiplier": 1, "sequence_breakers": [[]] } }), "dry.sequence_breakers"),
        (json!({ "xtc": { "probability": 1.1 } }), "xtc.probability"),
        (json!({ "xtc": { "probability": 1, "threshold": -0.1 } }), "xtc.threshold"),
        (json!({ "mirostat": { "mode": 2, "tau": 0 } }), "mirostat.tau"),
        (json!({ "mirostat": { "mode": 2, "eta": -1 } }), "mirostat.eta"),
        (json!({ "allowed_tokens": [] }), "allowed_tokens"),
        (json!({ "bad_words": [[]] }), "bad_words"),
        (json!({ "min_tokens_to_keep": 0 }), "min_tokens_to_keep"),
        // What greedy decoding or Mirostat would skip is checked too.
        (json!({ "temperature": 0, "top_p": 2 }), "top_p"),
        (json!({ "mirostat": { "mode": 1 }, "min_p": 2 }), "min_p"),
    ] {
        let error = refusal(request.clone(), 10);
        assert!(error.starts_with(&format!("{name}: ")), "{request}: {error}");
    }
    for request in [
        json!({ "logit_bias": { "10": 1 } }),
        json!({ "bad_words": [[3, 10]] }),
        json!({ "allowed_tokens": [10] }),
        json!({ "dry": { "multiplier": 1, "sequence_breakers": [[10]] } }),
    ] {
        assert!(refusal(request, 10).contains("token id 10"));
    }
    assert!(refusal(json!({}), 0).contains("vocabulary size"));
    assert!(refusal(json!({}), (1 << 20) + 1).contains("1048576"));
    let inf = Bias(f32::INFINITY);
    let infinite =
        SamplingOptions { logit_bias: Some([(1, inf)].into()), ..SamplingOptions::default() };
    let found = Chain::new(infinite, 10, &[], Arc::new(TokenSet::empty(10)));
    assert!(matches!(found, Err(Error::Parameter { name: "logit_bias", .. })));
    let found = Chain::new(SamplingOptions::default(), 10, &[10], Arc::new(TokenSet::empty(10)));
    assert!(matches!(found, Err(Error::TokenOutOfRange { .. })));
}

#[test]
fn orders_are_read_and_refused_by_name() {
    let read = |text: &str| text.parse::<Order>();
    let custom = read(" temperature ; top-p;repetition_penalty; typical_p").expect("an order");
    assert_eq!(custom.members(), ["temperature", "top_p", "repetition", "typical", "watermark"]);
    assert_eq!(custom.to_string(), "temperature;top_p;repetition;typical;watermark");
    assert_eq!(read(&custom.to_string()).expect("an order"), custom);
    assert_eq!(custom.preset(), None);
    for preset in Preset::ALL {
        assert_eq!(read(preset.name()).expect("a preset").preset(), Some(preset));
    }
    for (text, part) in [
        ("watermark;top_p", "top_p stands after it"),
        ("temperature;watermark;top_k;top_p", "top_k stands after it"),
        ("top_p;top_k;top_p", "top_p once"),
        ("top_q", "top_q"),
        ("", "transformers, vllm, llama.cpp"),
        ("top_p;;top_k", "transformers, vllm, llama.cpp"),
        // Three members read it, so it names none.
        ("penalty_last_n", "penalty_last_n"),
    ] {
        let error = read(text).expect_err(text).to_string();
        assert!(error.contains(part) && error.starts_with("order: "), "{text}: {error}");
    }
}

#[test]
fn a_custom_order_must_hold_what_is_asked_for() {
    let request = json!({ "top_k": 3, "top_p": 0.5, "order": "temperature;top_p" });
    assert!(refusal(request, 10).contains("an order that has top_k"));
    let greedy = json!({ "temperature": 0, "repetition_penalty": 2, "order": "temperature" });
    assert!(refusal(greedy, 10).contains("an order that has repetition"));
    let mirostat = json!({ "mirostat": { "mode": 2 }, "order": "temperature" });
    assert!(refusal(mirostat, 10).contains("an order that has mirostat"));
    // What is off need not be there.
    let off = json!({ "top_k": 0, "top_p": 1, "temperature": 1, "order": "watermark" });
    assert_eq!(chain(options(off), 10).effective().order, ["watermark"]);
}

#[test]
fn what_is_in_force_is_echoed() {
    let request = json!({ "temperature": 0.5, "top_k": 4, "min_p": 0.1, "order": "vllm" });
    let chain = chain(options(request), 10);
    assert_eq!(chain.decoding(), Decoding::Sampled);
    let effective = chain.effective();
    let json = serde_json::to_value(effective).expect("JSON");
    assert_eq!(json["order"], json!(["temperature", "min_p", "top_k", "watermark"]));
    assert_eq!(json["parameters"]["top_p"], json!(1.0));
    assert_eq!(json["parameters"]["order"], json!("vllm"));
    assert_eq!(json["replaced"], json!([]));
    assert_eq!(&serde_json::from_value::<Effective>(json).expect("the same"), effective);

    let llama = crate::support::chain(options(json!({ "order": "llama.cpp" })), 10);
    assert_eq!(llama.effective().parameters.penalty_last_n, Some(64));
    let order: Order = "llama.cpp".parse().expect("a preset");
    assert_eq!(order.output_scope(), PenaltyScope::Last(64));

    let request = json!({ "mirostat": { "mode": 2 }, "top_k": 4, "temperature": 0.5 });
    let mirostat = crate::support::chain(options(request.clone()), 10);
    assert_eq!(mirostat.effective().order, ["temperature", "mirostat", "watermark"]);
    assert_eq!(mirostat.effective().replaced, ["top_k"]);
    let mut greedy = request;
    greedy["temperature"] = json!(0);
    let greedy = crate::support::chain(options(greedy), 10);
    assert_eq!(greedy.decoding(), Decoding::Greedy);
    assert_eq!(greedy.effective().order, ["watermark"]);
    assert_eq!(greedy.effective().replaced, ["top_k", "mirostat"]);
}

#[test]
fn mirostat_follows_the_surprisal_before_the_mark() {
    let request = json!({ "mirostat": { "mode": 2, "tau": 1, "eta": 0.5 } });
    let chain = chain(options(request), 5);
    let logits = ln(&[0.5, 0.25, 0.125, 0.0625, 0.0625]);
    let (mut history, mut scratch) = (History::new(&[]), Scratch::new());
    let mut mu = 2.0;
    for step in 0..40 {
        let trace =
            chain.trace(&logits, &history, Step::KEEP, draw(step), &mut scratch).expect("a token");
        // 1, 2, 3, 4, 4 bits of surprisal; the best stays.
        let bits = [1.0, 2.0, 3.0, 4.0, 4.0];
        let expected = (0..5).filter(|&id| id == 0 || bits[id as usize] <= mu + 1e-6);
        assert_eq!(kept(&trace), expected.collect::<Vec<u32>>(), "mu {mu}");
        chain.accept(&mut history, &trace.outcome);
        let p = trace.probabilities[&trace.outcome.token];
        mu -= 0.5 * (-p.log2() - 1.0);
    }
    assert_eq!(history.generated().len(), 40);
    let options = MirostatOptions::new(MirostatMode::V1);
    assert_eq!(
        serde_json::to_value(options).expect("JSON"),
        json!({ "mode": 1, "tau": 5.0, "eta": 0.1 })
    );
}

#[test]
fn mirostat_one_keeps_a_long_run_near_its_target() {
    // A Zipf distribution with exponent 1.2 over 2000 tokens.
    let logits: Vec<f32> = (1..=2000u16).map(|rank| -1.2 * f32::from(rank).ln()).collect();
    for mode in [1, 2] {
        for tau in [2.0, 4.0] {
            let request = json!({ "mirostat": { "mode": mode, "tau": tau } });
            let chain = chain(options(request), 2000);
            let (mut history, mut scratch) = (History::new(&[]), Scratch::new());
            let mut bits = 0.0;
            for step in 0..600 {
                let outcome = chain
                    .step(&logits, &history, Step::KEEP, draw(step), &mut scratch)
                    .expect("a token");
                chain.accept(&mut history, &outcome);
                if step >= 200 {
                    bits += outcome.surprisal / std::f64::consts::LN_2 / 400.0;
                }
            }
            assert!((bits - tau).abs() < 0.25, "mode {mode}, tau {tau}: {bits}");
        }
    }
}

#[test]
fn mirostat_one_survives_degenerate_distributions() {
    for logits in [vec![0.0; 7], vec![1.0], vec![f32::MAX, f32::MIN, 0.0], vec![50.0, 0.0, 0.0]] {
        let trace = trace(json!({ "mirostat": { "mode": 1 } }), &logits);
        assert!(!trace.probabilities.is_empty());
    }
}

#[test]
fn the_minimum_length_bans_every_end_token() {
    let request = options(json!({ "min_tokens": 2 }));
    let chain =
        Chain::new(request, 4, &[1, 3], Arc::new(TokenSet::empty(4))).expect("a valid chain");
    let mut history = History::new(&[0, 0, 0]);
    let mut found = Vec::new();
    for _ in 0..3 {
        let trace = chain
            .trace(&[0.0; 4], &history, Step::KEEP, draw(0), &mut Scratch::new())
            .expect("a token");
        found.push(kept(&trace));
        history.push(0);
    }
    assert_eq!(found, [vec![0, 2], vec![0, 2], vec![0, 1, 2, 3]]);
}

#[test]
fn at_least_so_many_tokens_are_kept() {
    let logits = ln(&[0.7, 0.2, 0.06, 0.04]);
    for request in [
        json!({ "top_p": 0.1 }),
        json!({ "top_k": 1 }),
        json!({ "min_p": 1 }),
        json!({ "epsilon_cutoff": 0.9 }),
        json!({ "eta_cutoff": 1 }),
        json!({ "top_n_sigma": 0.01 }),
    ] {
        for least in 1..=5u32 {
            let mut request = request.clone();
            request["min_tokens_to_keep"] = json!(least);
            let expected: Vec<u32> = (0..least.min(4)).collect();
            assert_eq!(kept(&trace(request.clone(), &logits)), expected, "{request}");
        }
    }
}

#[test]
fn extreme_values_stay_finite() {
    let logits = [f32::MAX, f32::MIN, 1e38, 0.0];
    for request in [
        json!({ "temperature": 1e-5 }),
        json!({ "temperature": 3e38 }),
        json!({ "logit_bias": { "0": 3e38, "1": -3e38 } }),
        json!({ "repetition_penalty": 1e30 }),
        json!({ "repetition_penalty": 1e-30 }),
        json!({ "frequency_penalty": 3e38 }),
        json!({ "dry": { "multiplier": 1e300, "allowed_length": 1 } }),
        json!({ "top_n_sigma": 1e300 }),
    ] {
        let mut history = History::new(&[0, 1, 0, 1]);
        (0..4).for_each(|id| history.push(id));
        let trace = trace_with(request.clone(), &logits, &history, Step::KEEP);
        assert!(trace.stages.iter().all(|stage| stage.logits.iter().all(|l| l.is_finite())));
        let total: f64 = trace.probabilities.values().sum();
        assert!((total - 1.0).abs() < 1e-9, "{request}: {total}");
        assert!(trace.outcome.entropy.is_finite() && trace.outcome.logprob.is_finite());
    }
}

#[test]
fn a_wrong_number_of_logits_is_refused() {
    let chain = chain(SamplingOptions::default(), 5);
    let error = chain
        .step(&[0.0; 4], &History::new(&[]), Step::KEEP, draw(0), &mut Scratch::new())
        .expect_err("a refusal")
        .to_string();
    assert!(error.contains('4') && error.contains('5'), "{error}");
}

#[test]
fn a_scratch_serves_chains_of_any_size() {
    let mut scratch = Scratch::new();
    for (vocab, request) in
        [(100, json!({ "top_k": 5 })), (5, json!({})), (100, json!({})), (7, json!({ "top_k": 7 }))]
    {
        let logits = crate::support::logits(1, vocab);
        let chain = chain(options(request), vocab);
        let history = History::new(&[]);
        let run = |scratch: &mut Scratch| {
            chain.trace(&logits, &history, Step::KEEP, draw(3), scratch).expect("a token")
        };
        assert_eq!(run(&mut scratch), run(&mut Scratch::new()));
    }
}

#[test]
fn ids_of_the_history_beyond_the_vocabulary_are_ignored() {
    let history = History::new(&[1, 4_000_000_000, 5]);
    let request = json!({ "repetition_penalty": 2, "no_repeat_ngram_size": 1 });
    let trace = trace_with(request, &[1.0; 5], &history, Step::KEEP);
    assert_eq!(kept(&trace), [0, 2, 3, 4]);
    assert_eq!(history.prompt(), [1, 4_000_000_000, 5]);
    assert!(history.generated().is_empty());
}
