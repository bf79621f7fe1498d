//! Tokens drawn on the device are those that the chain draws on the host from the same logits,
//! with the same numbers beside them, bit for bit.

use std::sync::Arc;

use greenmark::engine::{
    Event, Generation, Model, Observe, Placement, Request, SamplerPlace, Session,
};
use greenmark::error::Error;
use greenmark::prf::Key;
use greenmark::profile::{Context, ContextWidth, PromptContext, Repeats};
use greenmark::sample::kernel::RowResult;
use greenmark::sample::{Chain, SamplingOptions};
use greenmark::scheme::{Gumbel, Marker, Scheme};
use greenmark::text::Tokenizer;
use greenmark::token::TokenSet;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::device::{device, is_mock};
use crate::driver::in_process;
use crate::fixtures::checkpoint;
use crate::session::{PROMPTS, marker};

fn tokenizer() -> Tokenizer {
    Tokenizer::open(concat!(env!("CARGO_MANIFEST_DIR"), "/data/models/tokenizer-300.json")).unwrap()
}

fn model(sampler: SamplerPlace) -> Model {
    let placement = Placement { sampler, ..Placement::from(device()) };
    Model::load_with(checkpoint("qwen3"), &placement).unwrap()
}

fn request(prompt: &str, options: Value, marker: Option<Marker>) -> Request {
    let never_marked = Arc::new(TokenSet::from_ids(300, [0, 1, 2]).unwrap());
    let options: SamplingOptions = serde_json::from_value(options).unwrap();
    let options = options.over(SamplingOptions { min_tokens: Some(40), ..Default::default() });
    Request {
        prompt: tokenizer().encode_ids(prompt).unwrap(),
        chain: Arc::new(Chain::new(options, 300, &[2], never_marked).unwrap()),
        marker,
        seed: 11,
        sample: 0,
        max_tokens: 40,
        stop: Vec::new(),
        end_ids: vec![2],
        observe: Observe::default(),
    }
}

fn gumbel() -> Marker {
    let width = ContextWidth::new(2).unwrap();
    let scheme: Arc<dyn Scheme> = Arc::new(Gumbel::new(&Key::from_bytes([6; 32]), width));
    Marker::new(scheme, Context { width, prompt: PromptContext::Tail, repeats: Repeats::Skip })
}

/// Requests of many kinds that share every step.
fn crowd() -> Vec<Request> {
    let kinds = [
        json!({}),
        json!({ "temperature": 0.0, "repetition_penalty": 1.3 }),
        json!({ "temperature": 0.8, "top_k": 40, "top_p": 0.9, "frequency_penalty": 0.4 }),
        json!({ "order": "llama.cpp", "temperature": 1.3, "min_p": 0.02, "presence_penalty": 0.5 }),
        json!({ "order": "vllm", "typical_p": 0.9, "dry": { "multiplier": 0.8, "base": 1.75,
            "allowed_length": 2, "sequence_breakers": [] }, "no_repeat_ngram_size": 4 }),
        json!({ "penalty_last_n": 5, "repetition_penalty": 1.2, "top_n_sigma": 1.5 }),
        json!({ "xtc": { "probability": 0.5, "threshold": 0.05 }, "eta_cutoff": 0.001 }),
        json!({ "logit_bias": { "17": 4.0, "20": "-inf" }, "allowed_tokens": (3..200).collect::<Vec<_>>() }),
    ];
    let mut requests = Vec::new();
    for (index, options) in kinds.into_iter().enumerate() {
        let prompt = PROMPTS[index % PROMPTS.len()];
        let greedy = options.get("temperature") == Some(&json!(0.0));
        requests.push(request(prompt, options.clone(), None));
        requests.push(request(prompt, options.clone(), Some(marker())));
        if !greedy {
            requests.push(request(prompt, options, Some(gumbel())));
        }
    }
    requests
}

fn run(model: &Model, requests: Vec<Request>) -> Vec<Generation> {
    let tokenizer = tokenizer();
    let mut session = Session::new(model, &tokenizer).with_prompt_chunk(3);
    session.run(requests, |_, _| Ok::<(), Error>(())).unwrap()
}

/// Tokens and the bits of every number of every step.
fn bits(generation: &Generation) -> Vec<(u32, u32, u32, u64, Option<u64>)> {
    let steps = generation.steps.iter();
    steps
        .map(|step| {
            (
                step.token,
                step.logprob.to_bits(),
                step.raw_logprob.to_bits(),
                step.entropy.to_bits(),
                step.green_mass.map(f64::to_bits),
            )
        })
        .collect()
}

#[test]
fn device_and_host_draw_the_same() {
    let (device, host) = (model(SamplerPlace::Auto), model(SamplerPlace::Cpu));
    let found = run(&device, crowd());
    let expected = run(&host, crowd());
    assert_eq!(found.len(), 23);
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found.ids.len(), 40, "request {index}");
        assert_eq!(bits(found), bits(expected), "request {index}");
    }
}

#[test]
fn companions_do_not_matter() {
    let model = model(SamplerPlace::Auto);
    let together = run(&model, crowd());
    for (index, request) in crowd().into_iter().enumerate().step_by(5) {
        let alone = run(&model, vec![request]);
        assert_eq!(alone[0].ids, together[index].ids, "request {index}");
    }
}

#[test]
fn requests_for_alternatives_are_drawn_beside_the_others() {
    let model = model(SamplerPlace::Auto);
    let expected = run(&model, crowd());
    let mut requests = crowd();
    for request in requests.iter_mut().step_by(3) {
        request.observe.alternatives = 4;
    }
    let found = run(&model, requests);
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(bits(found), bits(expected), "request {index}");
        let listed = if index % 3 == 0 { 40 } else { 0 };
        assert_eq!(found.alternatives.len(), listed, "request {index}");
        assert!(found.alternatives.iter().all(|step| step.len() == 4));
    }
}

/// A step in which only a request for alternatives draws, while the device's own request is
/// still reading its prompt.
#[test]
fn a_step_without_a_row_for_the_device_goes_on() {
    let model = model(SamplerPlace::Auto);
    let mut listed = request("the", json!({}), None);
    listed.observe.alternatives = 2;
    let long = request(&"stays mainly in the plain. ".repeat(4), json!({}), Some(marker()));
    let found = run(&model, vec![long.clone(), listed.clone()]);
    let alone = [run(&model, vec![long]), run(&model, vec![listed])].concat();
    for (found, alone) in found.iter().zip(&alone) {
        assert_eq!(bits(found), bits(alone));
    }
}

#[test]
#[ignore = "run by the next test, in a process with a log"]
fn a_crowd_is_drawn() {
    run(&model(SamplerPlace::Auto), crowd());
}

/// A step is two launches, and what comes back is the answer of each row: never logits.
#[test]
fn logits_stay_on_the_device() {
    device();
    if !is_mock() {
        return println!("skipped: only the mock has a log");
    }
    let file = NamedTempFile::new().unwrap();
    let log = [("MOCK_CUDA_LAUNCHES", file.path().to_str().unwrap())];
    in_process("draw::a_crowd_is_drawn", &log);
    let log = std::fs::read_to_string(file.path()).unwrap();
    let count = |start: &str| log.lines().filter(|line| line.starts_with(start)).count();
    let (scans, weighs) = (count("launch gm_scan "), count("launch gm_weigh "));
    assert!(scans >= 40 && scans == weighs, "{scans} and {weighs}");
    let answer = size_of::<RowResult>();
    let back: Vec<usize> =
        log.lines().filter_map(|line| line.strip_prefix("copy dtoh ")?.parse().ok()).collect();
    assert_eq!(back.len(), scans, "one copy a step");
    assert!(back.iter().all(|bytes| bytes % answer == 0 && bytes / answer <= 23), "{back:?}");
    assert!(answer < 4 * 300, "an answer is smaller than a row of logits");
}

#[test]
fn what_the_kernels_lack_is_refused_by_name() {
    let mirostat = json!({ "mirostat": { "mode": 2, "tau": 3.0, "eta": 0.1 } });
    let tokenizer = tokenizer();
    let on_device = model(SamplerPlace::Auto);
    let error = Session::new(&on_device, &tokenizer).add(request("the", mirostat.clone(), None));
    let message = error.unwrap_err().to_string();
    assert!(message.contains("mirostat") && message.contains("--sampler cpu"), "{message}");
    let on_host = model(SamplerPlace::Cpu);
    assert_eq!(run(&on_host, vec![request("the", mirostat, None)])[0].ids.len(), 40);
}

#[test]
fn a_request_that_fails_leaves_the_others() {
    let model = model(SamplerPlace::Auto);
    let alone = run(&model, vec![request("the", json!({}), Some(marker()))]);
    let tokenizer = tokenizer();
    let mut session = Session::new(&model, &tokenizer);
    // From the fourth token on, nothing is allowed.
    let stuck = json!({ "allowed_tokens": [5, 6], "no_repeat_ngram_size": 1 });
    let stuck = session.add(request("the", stuck, None)).unwrap();
    let good = session.add(request("the", json!({}), Some(marker()))).unwrap();
    let (mut failed, mut finished) = (None, None);
    while session.active() > 0 {
        for event in session.step().unwrap() {
            match event {
                Event::Failed(id, error) => failed = Some((id, error.to_string())),
                Event::Finished(id, generation) => finished = Some((id, generation)),
                Event::Text(..) => {}
            }
        }
    }
    let (id, message) = failed.unwrap();
    assert_eq!(id, stuck);
    assert!(message.contains("no_repeat_ngram"), "{message}");
    let (id, generation) = finished.unwrap();
    assert_eq!((id, bits(&generation)), (good, bits(&alone[0])));
}
