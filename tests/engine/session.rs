//! The decode loop on tiny checkpoints: who shares a batch changes nothing, and the mark is what
//! the scheme says.

use std::sync::Arc;

use greenmark::engine::{Device, Event, Finish, Generation, Model, Observe, Request, Session};
use greenmark::error::Error;
use greenmark::prf::Key;
use greenmark::profile::{Context, ContextWidth, Delta, Gamma, PromptContext, Repeats};
use greenmark::sample::{Chain, SamplingOptions};
use greenmark::scheme::{GreenList, Gumbel, Marker, Scheme};
use greenmark::text::Tokenizer;
use greenmark::token::TokenSet;

struct Bench {
    model: Model,
    tokenizer: Tokenizer,
}

impl Bench {
    fn new(model: &str) -> Self {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/data/models");
        Self {
            model: Model::load(format!("{data}/{model}"), Device::Cpu).unwrap(),
            tokenizer: Tokenizer::open(format!("{data}/tokenizer-300.json")).unwrap(),
        }
    }

    fn chain(options: SamplingOptions) -> Arc<Chain> {
        let never_marked = TokenSet::from_ids(300, [0, 1, 2]).unwrap();
        Arc::new(Chain::new(options, 300, &[2], Arc::new(never_marked)).unwrap())
    }

    fn request(&self, prompt: &str, options: SamplingOptions) -> Request {
        Request {
            prompt: self.tokenizer.encode_ids(prompt).unwrap(),
            chain: Self::chain(options),
            marker: None,
            seed: 11,
            sample: 0,
            max_tokens: 40,
            stop: Vec::new(),
            end_ids: vec![2],
            observe: Observe::default(),
        }
    }

    fn alone(&self, request: Request) -> Generation {
        self.session().run(vec![request], |_, _| Ok::<(), Error>(())).unwrap().remove(0)
    }

    fn session(&self) -> Session<'_> {
        Session::new(&self.model, &self.tokenizer)
    }
}

fn sampled() -> SamplingOptions {
    SamplingOptions { min_tokens: Some(40), ..SamplingOptions::default() }
}

fn greedy() -> SamplingOptions {
    SamplingOptions { temperature: Some(0.0), ..sampled() }
}

fn marker(delta: f64, width: u64, prompt: PromptContext) -> (Marker, Arc<GreenList>) {
    let width = ContextWidth::new(width).unwrap();
    let scheme = Arc::new(GreenList::new(
        &Key::from_bytes([5; 32]),
        Gamma::DEFAULT,
        Delta::new(delta).unwrap(),
        width,
    ));
    let rule = Context { width, prompt, repeats: Repeats::Mark };
    (Marker::new(Arc::clone(&scheme) as Arc<dyn Scheme>, rule), scheme)
}

#[test]
fn s32_prompts_of_different_lengths_share_a_batch_without_a_trace() {
    let bench = Bench::new("qwen3");
    let prompts = ["the", "the rain in Spain stays", &"mainly in the plain. ".repeat(4)];
    for options in [greedy(), sampled()] {
        let requests: Vec<Request> =
            prompts.iter().map(|prompt| bench.request(prompt, options.clone())).collect();
        let alone: Vec<Generation> = requests.iter().cloned().map(|r| bench.alone(r)).collect();
        for order in [[0, 1, 2], [2, 0, 1]] {
            let batch = order.iter().map(|&index| requests[index].clone()).collect();
            let together = bench.session().run(batch, |_, _| Ok::<(), Error>(())).unwrap();
            for (result, index) in together.iter().zip(order) {
                assert_eq!(result.ids, alone[index].ids, "prompt {index} in order {order:?}");
                assert_eq!(result.steps, alone[index].steps, "bits of probabilities as well");
            }
        }
    }
}

#[test]
fn s33_requests_leave_nothing_behind() {
    let bench = Bench::new("llama");
    let (a, b) = (bench.request("the rain", sampled()), bench.request("in Spain", sampled()));
    let fresh = bench.alone(a.clone());
    let mut session = bench.session();
    let mut run = |requests: Vec<Request>| -> Vec<Vec<u32>> {
        let results = session.run(requests, |_, _| Ok::<(), Error>(())).unwrap();
        results.into_iter().map(|result| result.ids).collect()
    };
    assert_eq!(run(vec![a.clone()])[0], fresh.ids);
    run(vec![b.clone()]);
    assert_eq!(run(vec![a.clone()])[0], fresh.ids);
    assert_eq!(run(vec![b, a.clone()])[1], fresh.ids);
    // Left midway, then the same again.
    let id = session.add(a.clone()).unwrap();
    for _ in 0..10 {
        session.step().unwrap();
    }
    session.cancel(id);
    assert_eq!(session.active(), 0);
    let again = session.run(vec![a], |_, _| Ok::<(), Error>(())).unwrap();
    assert_eq!(again[0].ids, fresh.ids);
}

#[test]
fn a_request_joins_between_steps_and_gets_the_tokens_it_would_get_alone() {
    let bench = Bench::new("mistral");
    let first = bench.request("the rain", sampled());
    let second = Request { seed: 12, ..bench.request("stays mainly in the plain", sampled()) };
    let expected = [bench.alone(first.clone()).ids, bench.alone(second.clone()).ids];
    let mut session = bench.session();
    let first = session.add(first).unwrap();
    let mut finished = Vec::new();
    let mut steps = 0;
    while session.active() > 0 {
        if steps == 7 {
            session.add(second.clone()).unwrap();
        }
        steps += 1;
        for event in session.step().unwrap() {
            if let Event::Finished(id, generation) = event {
                finished.push((id == first, generation.ids));
            }
        }
    }
    assert_eq!(finished, [(true, expected[0].clone()), (false, expected[1].clone())]);
}

#[test]
fn a_prompt_read_in_chunks_gives_the_same_text() {
    let bench = Bench::new("llama");
    let prompt = "the rain in Spain stays mainly in the plain. ".repeat(4);
    let request = bench.request(&prompt, sampled());
    assert!(request.prompt.len() > 100);
    let whole = bench.alone(request.clone());
    for chunk in [1, 7, 64] {
        let mut session = bench.session().with_prompt_chunk(chunk);
        let short = bench.request("the", sampled());
        let texts =
            session.run(vec![request.clone(), short.clone()], |_, _| Ok::<(), Error>(())).unwrap();
        assert_eq!(texts[0].ids, whole.ids, "chunks of {chunk}");
        assert_eq!(texts[1].ids, bench.alone(short).ids, "beside chunks of {chunk}");
    }
}

#[test]
fn offsets_are_those_of_the_text_even_where_bytes_are_no_text() {
    let bench = Bench::new("llama");
    // A high temperature over single bytes: most of them are no UTF-8.
    let options = SamplingOptions { temperature: Some(3.0), ..sampled() };
    let mut broken = 0;
    for seed in 0..20 {
        let request = Request { seed, ..bench.request("the rain", options.clone()) };
        let text = bench.alone(request);
        broken += text.text.matches('\u{fffd}').count();
        let (mut last, mut bytes) = (0, Vec::new());
        for step in &text.steps {
            assert!(step.offset >= last && step.offset <= text.text.len());
            last = step.offset;
            // What was decoded before a token that starts a character stands before its offset.
            if std::str::from_utf8(&bytes).is_ok() {
                assert_eq!(step.offset, bytes.len());
            }
            bytes.extend_from_slice(bench.tokenizer.token_bytes(step.token).unwrap());
        }
        assert_eq!(text.text, String::from_utf8_lossy(&bytes));
    }
    assert!(broken > 20, "the case has to occur: {broken}");
}

#[test]
fn an_id_that_ends_a_text_is_never_marked_whatever_its_kind() {
    let bench = Bench::new("llama");
    // Token 50 ends the text here although it is ordinary for the tokenizer.
    let mut info = bench.model.info().clone();
    info.end_ids = vec![2, 50];
    let ends = greenmark::engine::end_ids(&info, &bench.tokenizer);
    assert!(ends.contains(&50) && ends.contains(&2));
    let never = greenmark::engine::never_marked(&info, &bench.tokenizer).unwrap();
    assert!([0, 1, 2, 50].iter().all(|&id| never.contains(id)) && !never.contains(51));
}

#[test]
fn a_run_that_fails_leaves_no_request_behind() {
    let bench = Bench::new("llama");
    let mut session = bench.session();
    let error = session.run(vec![bench.request("the rain", sampled())], |_, _| {
        Err(Error::parameter("reader", "gone", "a reader"))
    });
    assert!(error.is_err());
    assert_eq!(session.active(), 0);
    let wrong = Request { max_tokens: 0, ..bench.request("x", sampled()) };
    let batch = vec![bench.request("the rain", sampled()), wrong];
    assert!(session.run(batch, |_, _| Ok::<(), Error>(())).is_err());
    assert_eq!(session.active(), 0);
}

#[test]
fn w05_the_first_token_is_seeded_from_the_prompts_end() {
    let bench = Bench::new("llama");
    for width in [0u64, 1, 2, 4] {
        let (tail, scheme) = marker(50.0, width, PromptContext::Tail);
        let request =
            Request { marker: Some(tail), ..bench.request("the rain in Spain", sampled()) };
        let prompt = request.prompt.clone();
        let ids = bench.alone(request).ids;
        let all: Vec<u32> = prompt.iter().chain(&ids).copied().collect();
        for at in prompt.len()..all.len() {
            let context = &all[at - usize::try_from(width).unwrap()..at];
            assert!(scheme.is_green(context, all[at]), "width {width}, token {at}");
        }
    }
    // Without the prompt the first tokens are those of an unmarked run.
    let plain = bench.alone(bench.request("the rain in Spain", sampled())).ids;
    let (none, _) = marker(50.0, 4, PromptContext::None);
    let request = Request { marker: Some(none), ..bench.request("the rain in Spain", sampled()) };
    let marked = bench.alone(request).ids;
    assert_eq!(marked[..4], plain[..4]);
    assert_ne!(marked, plain);
    // A prompt shorter than the context gives none, and no index error.
    let (tail, _) = marker(50.0, 4, PromptContext::Tail);
    let short = Request { marker: Some(tail), ..bench.request("Q", sampled()) };
    assert_eq!(bench.alone(short).ids.len(), 40);
}

#[test]
fn greedy_decoding_is_marked_by_a_bias_and_refused_by_a_keyed_draw() {
    let bench = Bench::new("llama");
    let plain = bench.alone(bench.request("the rain", greedy())).ids;
    let (bias, scheme) = marker(50.0, 1, PromptContext::Tail);
    let marked = bench.alone(Request { marker: Some(bias), ..bench.request("the rain", greedy()) });
    assert_ne!(marked.ids, plain);
    assert!(marked.ids.windows(2).all(|pair| scheme.is_green(&pair[..1], pair[1])));
    let width = ContextWidth::new(4).unwrap();
    let scheme = Arc::new(Gumbel::new(&Key::from_bytes([5; 32]), width));
    let rule = Context { width, prompt: PromptContext::Tail, repeats: Repeats::Skip };
    let keyed = Marker::new(scheme, rule);
    let request = Request { marker: Some(keyed), ..bench.request("the rain", greedy()) };
    let error = bench.session().add(request).unwrap_err().to_string();
    assert!(error.contains("temperature") && error.contains("draw"), "{error}");
}

#[test]
fn s29_prompt_and_new_tokens_have_to_fit_the_context() {
    let bench = Bench::new("llama");
    let mut session = bench.session();
    let prompt = "Q".repeat(100);
    let request = |max_tokens| Request { max_tokens, ..bench.request(&prompt, sampled()) };
    session.add(request(156)).unwrap();
    let error = session.add(request(157)).unwrap_err().to_string();
    for part in ["100 prompt tokens", "157", "256", "at most 156"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(session.add(request(usize::MAX)).is_err());
    assert!(session.add(request(0)).is_err());
    let empty = Request { prompt: Vec::new(), ..request(5) };
    assert!(session.add(empty).unwrap_err().to_string().contains("prompt"));
    let foreign = Request { prompt: vec![300], ..request(5) };
    assert!(session.add(foreign).unwrap_err().to_string().contains("token id 300"));
}

#[test]
fn one_broken_request_does_not_end_the_others() {
    let bench = Bench::new("llama");
    let fine = bench.request("the rain", sampled());
    let expected = bench.alone(fine.clone()).ids;
    let nothing = SamplingOptions {
        allowed_tokens: Some(vec![2]),
        min_tokens: Some(5),
        ..SamplingOptions::default()
    };
    let mut session = bench.session();
    session.add(fine).unwrap();
    let broken = session.add(bench.request("the rain", nothing)).unwrap();
    let (mut failed, mut ids) = (Vec::new(), Vec::new());
    while session.active() > 0 {
        for event in session.step().unwrap() {
            match event {
                Event::Failed(id, error) => failed.push((id, error.to_string())),
                Event::Finished(_, generation) => ids = generation.ids,
                Event::Text(..) => {}
            }
        }
    }
    assert_eq!(ids, expected);
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].0, broken);
    assert!(failed[0].1.contains("no token allowed"), "{}", failed[0].1);
}

#[test]
fn streamed_text_adds_up_and_stop_strings_cut_ids_and_offsets() {
    let bench = Bench::new("llama");
    let whole = bench.alone(bench.request("the rain", sampled()));
    assert_eq!(whole.finish, Finish::Length);
    let stop: String = whole.text.chars().skip(15).take(3).collect();
    let request = Request { stop: vec![stop.clone()], ..bench.request("the rain", sampled()) };
    let mut streamed = String::new();
    let results = bench
        .session()
        .run(vec![request], |_, text| {
            streamed.push_str(text);
            Ok::<(), Error>(())
        })
        .unwrap();
    let cut = &results[0];
    assert_eq!(cut.finish, Finish::StopString(stop.clone()));
    assert_eq!(cut.text, whole.text[..whole.text.find(&stop).unwrap()]);
    assert_eq!(streamed, cut.text);
    assert_eq!(cut.ids, whole.ids[..cut.ids.len()]);
    assert!(cut.steps.iter().all(|step| step.offset < cut.text.len()));
    assert!(cut.drawn >= cut.ids.len());
    assert_eq!(cut.ids.len(), cut.steps.len());
}

#[test]
fn the_raw_log_probability_of_a_step_knows_no_mark() {
    let bench = Bench::new("llama");
    let plain = bench.alone(bench.request("the rain", SamplingOptions::default()));
    // At temperature 1 without truncation a token is drawn from the model's own distribution.
    assert!(plain.steps.len() > 1);
    assert!(plain.steps.iter().all(|step| step.raw_logprob == step.logprob));
    let (marker, scheme) = marker(3.0, 1, PromptContext::Tail);
    let mut request = bench.request("the rain", SamplingOptions::default());
    let last = request.prompt[request.prompt.len() - 1];
    request.marker = Some(marker);
    let marked = bench.alone(request);
    // A green token was drawn with e^3 / Z times its own probability, Z = 1 - m + e^3 m.
    let step = marked.steps[0];
    let mass = step.green_mass.unwrap();
    let bias = if scheme.is_green(&[last], step.token) { 3.0 } else { 0.0 };
    let expected = bias - (1.0 - mass + 3f64.exp() * mass).ln();
    assert!((f64::from(step.logprob - step.raw_logprob) - expected).abs() < 1e-4, "{step:?}");
}
