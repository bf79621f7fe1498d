//! The kept sets and values of transformers' processors (`samplers.json`).

use std::sync::Arc;

use greenmark::sample::{Chain, History, SamplingOptions, Scratch, Trace};
use greenmark::scheme::{Action, Gate, Membership, Scope, Step};
use greenmark::token::{TokenId, TokenSet};
use serde_json::{Value, json};

use crate::support;
use crate::vectors;

/// A decision nearer to its boundary than this may fall either way: ours grants 1e-7 to the
/// tokens, the reference rounds sums of f32.
const BOUNDARY: f64 = 2e-7;

fn number(value: &Value) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "logits are f32")]
    match value.as_str() {
        Some(text) => text.parse().expect("a number or -inf"),
        None => value.as_f64().expect("a number") as f32,
    }
}

fn numbers(value: &Value) -> Vec<f32> {
    value.as_array().expect("an array").iter().map(number).collect()
}

fn ids(value: &Value) -> Vec<TokenId> {
    serde_json::from_value(value.clone()).expect("ids")
}

/// The field of the options that sets a processor.
fn field(processor: &str) -> &str {
    match processor {
        "typical" => "typical_p",
        "epsilon" => "epsilon_cutoff",
        "eta" => "eta_cutoff",
        other => other,
    }
}

struct Case<'a> {
    json: &'a Value,
    logits: Vec<f32>,
    context: Vec<TokenId>,
}

impl Case<'_> {
    fn run(&self, options: Value, step: Step) -> Trace {
        support::trace_with(options, &self.logits, &History::new(&self.context), step)
    }

    fn options(&self) -> Value {
        let mut options = json!({});
        if let Some(chain) = self.json["chain"].as_array() {
            for link in chain {
                options[field(link[0].as_str().expect("a name"))] = link[1].clone();
            }
        } else {
            let processor = self.json["processor"].as_str().expect("a processor");
            options[field(processor)] = self.json["value"].clone();
        }
        if let Some(least) = self.json.get("min_tokens_to_keep") {
            options["min_tokens_to_keep"] = least.clone();
        }
        options
    }

    /// Final logits by id, negative infinity where dropped.
    fn scores(&self, trace: &Trace) -> Vec<f32> {
        let Some(last) = trace.stages.last() else { return self.logits.clone() };
        let mut scores = vec![f32::NEG_INFINITY; self.logits.len()];
        for (&id, &logit) in last.kept.iter().zip(&last.logits) {
            scores[id as usize] = logit;
        }
        scores
    }
}

fn same(found: f32, expected: f32) -> bool {
    found == expected || (found - expected).abs() <= 1e-5
}

#[test]
fn every_case_of_transformers() {
    let file = vectors::read(&vectors::folder().join("samplers.json"));
    let (mut checked, mut at_boundary) = (0, 0);
    for case in file["cases"].as_array().expect("cases") {
        let set = case["set"].as_str().expect("set");
        let logits = case.get("logits").unwrap_or(&file["logit_sets"][set]);
        let context = file["contexts"].get(set).map(ids).unwrap_or_default();
        let case = Case { json: case, logits: numbers(logits), context };
        if case.json["margin"].as_f64().is_some_and(|margin| margin < BOUNDARY) {
            at_boundary += 1;
            continue;
        }
        check(&case);
        checked += 1;
    }
    assert!(checked > 0 && at_boundary * 20 <= checked, "{checked} checked, {at_boundary} not");
}

fn check(case: &Case<'_>) {
    let context = || format!("{}", case.json);
    if case.json["then_watermark"].is_object() {
        return check_marked(case);
    }
    let trace = case.run(case.options(), Step::KEEP);
    let scores = case.scores(&trace);
    if let Some(out) = case.json.get("out") {
        for (id, (&found, expected)) in scores.iter().zip(numbers(out)).enumerate() {
            assert!(same(found, expected), "id {id}: {found} for {expected}: {}", context());
        }
        return;
    }
    let kept: Vec<TokenId> = (0..)
        .zip(&scores)
        .filter(|(_, score)| **score > f32::NEG_INFINITY)
        .map(|(id, _)| id)
        .collect();
    let expected = ids(&case.json["kept"]);
    if case.json["processor"] == "top_k" && kept != expected {
        // transformers keeps every tie of the k-th; this chain keeps exactly k.
        return check_ties(case, &kept, &expected);
    }
    assert_eq!(kept, expected, "{}", context());
    if let Some(values) = case.json.get("kept_scores") {
        for (&id, expected) in kept.iter().zip(numbers(values)) {
            let found = scores[id as usize];
            assert!(same(found, expected), "id {id}: {found} for {expected}: {}", context());
        }
    }
}

/// Exactly k, and those the reference keeps beyond are ties of the last with larger ids.
fn check_ties(case: &Case<'_>, kept: &[TokenId], expected: &[TokenId]) {
    let k = usize::try_from(case.json["value"].as_u64().expect("k")).expect("k");
    assert_eq!(kept.len(), k, "{}", case.json);
    let logit = |id: &TokenId| case.logits[*id as usize];
    let lowest = kept.iter().map(logit).fold(f32::INFINITY, f32::min);
    let last = kept.iter().filter(|id| logit(id) == lowest).max().expect("a lowest");
    for id in expected.iter().filter(|id| !kept.contains(id)) {
        assert!(logit(id) == lowest && id > last, "{}", case.json);
    }
    assert!(kept.iter().all(|id| expected.contains(id)), "{}", case.json);
}

/// The mark adds its delta to the green survivors and changes nothing else. Which are green is a
/// matter of that system's generator; here they are read off the expected scores.
fn check_marked(case: &Case<'_>) {
    let plain = case.scores(&case.run(case.options(), Step::KEEP));
    let kept = ids(&case.json["kept"]);
    let expected = numbers(&case.json["kept_scores"]);
    let delta = number(&case.json["then_watermark"]["bias"]);
    let green: Vec<TokenId> = kept
        .iter()
        .zip(&expected)
        .filter(|&(&id, &score)| same(plain[id as usize] + delta, score))
        .map(|(&id, _)| id)
        .collect();
    let vocab = case.logits.len();
    let set = TokenSet::from_ids(vocab, green.iter().copied()).expect("ids");
    let membership = Membership::Set(Arc::new(set));
    let action = Action::Bias { membership, delta, scope: Scope::Survivors };
    let trace = case.run(case.options(), Step { gate: Gate::Always, action });
    let last = trace.stages.last().expect("the watermark");
    assert_eq!((last.processor, &last.kept), ("watermark", &kept));
    for (found, expected) in last.logits.iter().zip(expected) {
        assert!(same(*found, expected), "{}", case.json);
    }
}

/// A batch is a list of chains and histories: nothing is shared but the buffers.
#[test]
fn requests_of_a_batch_do_not_touch_each_other() {
    let file = vectors::read(&vectors::repository_folder().join("samplers.json"));
    let logits = numbers(&file["logit_sets"]["normal"]);
    let requests = [
        json!({ "temperature": 0.7, "top_k": 5 }),
        json!({ "temperature": 0 }),
        json!({ "top_p": 0.5, "order": "vllm" }),
        json!({ "mirostat": { "mode": 2 } }),
    ];
    let chains: Vec<Chain> = requests
        .iter()
        .map(|request| support::chain(support::options(request.clone()), logits.len()))
        .collect();
    let step = |chain: &Chain, scratch: &mut Scratch| {
        let history = History::new(&[3, 4]);
        chain.step(&logits, &history, Step::KEEP, support::draw(9), scratch).expect("a token")
    };
    let alone: Vec<_> = chains.iter().map(|chain| step(chain, &mut Scratch::new())).collect();
    let mut shared = Scratch::new();
    for order in [[0, 1, 2, 3], [3, 1, 0, 2]] {
        for index in order {
            assert_eq!(step(&chains[index], &mut shared), alone[index]);
        }
    }
    let threads: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = chains
            .iter()
            .map(|chain| scope.spawn(move || step(chain, &mut Scratch::new())))
            .collect();
        handles.into_iter().map(|handle| handle.join().expect("no panic")).collect()
    });
    assert_eq!(threads, alone);
    assert_ne!(SamplingOptions::default(), SamplingOptions::built_in());
}
