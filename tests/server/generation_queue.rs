//! The thread that owns the model, without HTTP: order, room, faults and the end.

use std::sync::Arc;

use greenmark::engine::{Device, Generation, Mark, Model, Observe, Request, Session, TextEngine};
use greenmark::error::Error;
use greenmark::prf::Key;
use greenmark::profile::{Context, SchemeParameters};
use greenmark::sample::SamplingOptions;
use greenmark::scheme::{Greedy, Marker, Null, Scheme, Step};
use greenmark::server::{Delivery, GenerationQueue, QueueRoom, Refusal};
use greenmark::token::TokenId;

use crate::support::{tiny_model, tiny_tokenizer};

const ROOM: QueueRoom =
    QueueRoom { max_batch: 3, queue: 4, cache_tokens: 2000, prompt_chunk: 3, threads: Some(1) };

fn engine() -> Arc<TextEngine> {
    let path = tiny_model("llama");
    let model = Model::load(&path, Device::Cpu).unwrap();
    let tokenizer = tiny_tokenizer();
    Arc::new(TextEngine::open(model, path.as_ref(), Some(tokenizer.as_ref())).unwrap())
}

fn request(engine: &TextEngine, prompt: &str, tokens: usize) -> Request {
    let options = SamplingOptions { min_tokens: Some(tokens), ..SamplingOptions::default() };
    Request {
        prompt: engine.prompt_ids(prompt).unwrap(),
        chain: engine.chain(options).unwrap(),
        marker: None,
        seed: 7,
        sample: 0,
        max_tokens: tokens,
        stop: Vec::new(),
        end_ids: engine.end_ids().to_vec(),
        observe: Observe { alternatives: 2, ..Observe::default() },
    }
}

fn alone(engine: &TextEngine, request: Request) -> Generation {
    let mut session = Session::new(engine.model(), engine.tokenizer());
    session.run(vec![request], |_, _| Ok::<(), Error>(())).unwrap().remove(0)
}

/// The texts of a group, after all of its deliveries; the parts have to make the whole.
macro_rules! collect {
    ($deliveries:expr) => {{
        let mut deliveries = $deliveries;
        let mut texts: Vec<(usize, Generation)> = Vec::new();
        let mut parts: std::collections::BTreeMap<usize, (String, usize)> = Default::default();
        let mut failure = None;
        while let Some(delivery) = deliveries.blocking_recv() {
            match delivery {
                Delivery::Text { index, text, steps, alternatives } => {
                    assert_eq!(steps.len(), alternatives.len());
                    let part = parts.entry(index).or_default();
                    part.0.push_str(&text);
                    part.1 += steps.len();
                }
                Delivery::Finished { index, text, generation } => {
                    let part = parts.entry(index).or_default();
                    part.0.push_str(&text);
                    assert_eq!(part.0, generation.text);
                    assert!(part.1 <= generation.steps.len());
                    texts.push((index, *generation));
                }
                Delivery::Failed(error) => failure = Some(error),
            }
        }
        texts.sort_by_key(|(index, _)| *index);
        (texts.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), failure)
    }};
}

#[test]
fn s33_a_text_is_the_same_alone_beside_others_and_joining_midway() {
    let engine = engine();
    let queue = GenerationQueue::start(Arc::clone(&engine), ROOM).unwrap();
    let prompts = ["the rain", "in Spain stays mainly", "Q", "in the plain", "the rain in Spain"];
    let expected: Vec<Generation> =
        prompts.iter().map(|prompt| alone(&engine, request(&engine, prompt, 60))).collect();
    // More than fit at once: some join when others have left.
    let running: Vec<_> = prompts
        .iter()
        .map(|prompt| {
            let places = queue.reserve(1).unwrap();
            queue.submit(places, vec![request(&engine, prompt, 60)]).unwrap()
        })
        .collect();
    for (deliveries, expected) in running.into_iter().zip(&expected) {
        let (texts, failure) = collect!(deliveries);
        assert!(failure.is_none());
        assert_eq!(texts[0].ids, expected.ids);
        assert_eq!(texts[0].steps, expected.steps, "bits of probabilities as well");
        assert_eq!(texts[0].alternatives, expected.alternatives);
    }
    queue.close();
    queue.join();
    assert!(!queue.is_open());
    assert!(matches!(queue.reserve(1), Err(Refusal::Closed)));
}

#[test]
fn places_and_caches_are_bounded() {
    let engine = engine();
    let queue = GenerationQueue::start(Arc::clone(&engine), ROOM).unwrap();
    let all = queue.reserve(7).unwrap();
    let Err(Refusal::Full { retry_after }) = queue.reserve(1) else { panic!("no place is left") };
    assert!(retry_after.as_secs() >= 1);
    drop(all);
    let places = queue.reserve(4).unwrap();
    let four = vec![request(&engine, "Q", 5); 4];
    assert!(matches!(queue.submit(places, four), Err(Refusal::Invalid(_))), "a batch has 3");
    let small = QueueRoom { cache_tokens: 100, ..ROOM };
    let queue = GenerationQueue::start(Arc::clone(&engine), small).unwrap();
    let places = queue.reserve(1).unwrap();
    let Err(Refusal::Invalid(error)) = queue.submit(places, vec![request(&engine, "Q", 100)])
    else {
        panic!("101 tokens fit")
    };
    assert!(error.to_string().contains("101") && error.to_string().contains("100"), "{error}");
    // Two of 60 do not fit together; the second waits and is served.
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let places = queue.reserve(1).unwrap();
            queue.submit(places, vec![request(&engine, "Q", 60)]).unwrap()
        })
        .collect();
    for deliveries in waiting {
        assert_eq!(collect!(deliveries).0[0].ids.len(), 60);
    }
}

/// A scheme that fails as no scheme should.
#[derive(Debug)]
struct Panics;

impl Scheme for Panics {
    fn name(&self) -> &'static str {
        "panics"
    }
    fn context_width(&self) -> usize {
        1
    }
    fn step(&self, _context: &[TokenId]) -> Step {
        panic!("a fault that the test planted")
    }
    fn score(&self, _context: &[TokenId], _token: TokenId) -> f64 {
        0.0
    }
    fn null(&self) -> Null {
        Null::Exponential
    }
    fn effective_input(&self, _: &[TokenId], _: TokenId, _: &mut Vec<TokenId>) {}
    fn greedy(&self) -> Greedy {
        Greedy::Marked
    }
}

#[test]
fn a_panic_ends_the_texts_under_way_and_the_next_are_served() {
    let engine = engine();
    let queue = GenerationQueue::start(Arc::clone(&engine), ROOM).unwrap();
    let rule: Context = SchemeParameters::default().default_context();
    let wrong = Request {
        marker: Some(Marker::new(Arc::new(Panics), rule)),
        ..request(&engine, "the rain", 20)
    };
    let places = queue.reserve(1).unwrap();
    let (texts, failure) = collect!(queue.submit(places, vec![wrong]).unwrap());
    assert!(texts.is_empty() && failure.is_none(), "the deliveries end without a result");
    let expected = alone(&engine, request(&engine, "the rain", 20));
    let places = queue.reserve(1).unwrap();
    let deliveries = queue.submit(places, vec![request(&engine, "the rain", 20)]).unwrap();
    assert_eq!(collect!(deliveries).0[0].ids, expected.ids);
    assert_eq!(queue.load().panics, 1);
}

#[test]
fn a_text_that_cannot_go_on_fails_alone() {
    let engine = engine();
    let queue = GenerationQueue::start(Arc::clone(&engine), ROOM).unwrap();
    let options = SamplingOptions {
        allowed_tokens: Some(vec![2]),
        min_tokens: Some(5),
        ..SamplingOptions::default()
    };
    let wrong =
        Request { chain: engine.chain(options).unwrap(), ..request(&engine, "the rain", 20) };
    let good = queue.reserve(1).unwrap();
    let good = queue.submit(good, vec![request(&engine, "in Spain", 40)]).unwrap();
    let places = queue.reserve(1).unwrap();
    let (_, failure) = collect!(queue.submit(places, vec![wrong]).unwrap());
    assert!(matches!(*failure.unwrap(), Error::NoTokenAllowed { .. }));
    assert_eq!(collect!(good).0[0].ids.len(), 40);
}

#[test]
fn a_mark_finds_itself_in_its_key_alone() {
    let engine = engine();
    let key = Key::from_bytes([3; 32]);
    let profile = greenmark::profile::Profile::new(
        SchemeParameters::default(),
        SchemeParameters::default().default_context(),
        greenmark::document::identify(engine.tokenizer()),
        greenmark::profile::KeyIdentity { id: "k".into(), fingerprint: key.fingerprint() },
    )
    .unwrap();
    let mark = Mark::new(profile.clone(), &key, engine.tokenizer()).unwrap();
    assert_eq!(mark.profile(), &profile);
    let other = Key::from_bytes([4; 32]);
    assert!(matches!(Mark::new(profile, &other, engine.tokenizer()), Err(Error::Mismatch { .. })));
}
