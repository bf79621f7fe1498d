//! Whole generations on a device: the tokens, with a mark, are those of the CPU.

use std::sync::Arc;

use greenmark::engine::{
    BatchShape, DeviceDtype, Event, Generation, Model, Observe, Request, Session,
};
use greenmark::error::Error;
use greenmark::prf::Key;
use greenmark::profile::{Context, ContextWidth, Delta, Gamma, PromptContext, Repeats};
use greenmark::sample::{Chain, SamplingOptions};
use greenmark::scheme::{GreenList, Marker, Scheme};
use greenmark::text::Tokenizer;
use greenmark::token::TokenSet;

use crate::device::on_device;
use crate::fixtures::{checkpoint, load};

pub(crate) const PROMPTS: [&str; 5] =
    ["the", "the rain in Spain", "stays mainly", "in", "the plain. the"];

pub(crate) fn marker() -> Marker {
    let width = ContextWidth::new(1).unwrap();
    let delta = Delta::new(2.0).unwrap();
    let key = Key::from_bytes([5; 32]);
    let scheme: Arc<dyn Scheme> = Arc::new(GreenList::new(&key, Gamma::DEFAULT, delta, width));
    let rule = Context { width, prompt: PromptContext::Tail, repeats: Repeats::Mark };
    Marker::new(scheme, rule)
}

fn requests(tokenizer: &Tokenizer, marked: bool) -> Vec<Request> {
    let never_marked = Arc::new(TokenSet::from_ids(300, [0, 1, 2]).unwrap());
    let options = SamplingOptions { min_tokens: Some(32), ..SamplingOptions::default() };
    let chain = Arc::new(Chain::new(options, 300, &[2], never_marked).unwrap());
    PROMPTS
        .iter()
        .map(|prompt| Request {
            prompt: tokenizer.encode_ids(prompt).unwrap(),
            chain: Arc::clone(&chain),
            marker: marked.then(marker),
            seed: 11,
            sample: 0,
            max_tokens: 32,
            stop: Vec::new(),
            end_ids: vec![2],
            observe: Observe::default(),
        })
        .collect()
}

fn tokens(model: &Model, tokenizer: &Tokenizer, requests: Vec<Request>) -> Vec<Vec<u32>> {
    // Pieces of prompts beside decoding, as in the service.
    let mut session = Session::new(model, tokenizer).with_prompt_chunk(3);
    let results: Vec<Generation> = session.run(requests, |_, _| Ok::<(), Error>(())).unwrap();
    results.into_iter().map(|result| result.ids).collect()
}

#[test]
fn sampled_and_marked_tokens_are_those_of_the_cpu() {
    let tokenizer =
        Tokenizer::open(concat!(env!("CARGO_MANIFEST_DIR"), "/data/models/tokenizer-300.json"))
            .unwrap();
    for name in ["llama", "mistral", "qwen2", "qwen3"] {
        let cpu = load(checkpoint(name));
        let free = on_device(checkpoint(name), DeviceDtype::F32, BatchShape::Free);
        let fixed = on_device(checkpoint(name), DeviceDtype::F32, BatchShape::Fixed(4));
        for marked in [false, true] {
            let requests = requests(&tokenizer, marked);
            let wanted = tokens(&cpu, &tokenizer, requests.clone());
            assert!(wanted.iter().all(|ids| ids.len() == 32), "{name}");
            for model in [&free, &fixed] {
                let kernels = &model.info().kernels;
                let alone = tokens(model, &tokenizer, vec![requests[1].clone()]);
                assert_eq!(alone[0], wanted[1], "{name} {kernels} {marked}");
                let found = tokens(model, &tokenizer, requests.clone());
                assert_eq!(found, wanted, "{name} {kernels} {marked}");
            }
        }
    }
}

/// Requests that join at any step, in any order, beside others that are cancelled midway: each
/// text is the one it would be alone, drawn on the device.
#[test]
fn who_joins_or_leaves_changes_nothing() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/models/tokenizer-300.json");
    let tokenizer = Tokenizer::open(path).unwrap();
    let model = on_device(checkpoint("llama"), DeviceDtype::F32, BatchShape::Fixed(4));
    let requests = requests(&tokenizer, true);
    let alone: Vec<Vec<u32>> =
        requests.iter().map(|r| tokens(&model, &tokenizer, vec![r.clone()]).remove(0)).collect();
    for order in [[0, 1, 2, 3, 4], [3, 0, 4, 2, 1]] {
        let mut session = Session::new(&model, &tokenizer).with_prompt_chunk(2);
        let mut owners = Vec::new();
        let mut found = vec![Vec::new(); requests.len()];
        for step in 0.. {
            if let Some(&index) = order.get(step / 3).filter(|_| step % 3 == 0) {
                owners.push((session.add(requests[index].clone()).unwrap(), index));
                // Somebody who leaves again.
                let left = session.add(requests[0].clone()).unwrap();
                session.step().unwrap();
                session.cancel(left);
            }
            if session.active() == 0 && step > 15 {
                break;
            }
            for event in session.step().unwrap() {
                if let Event::Finished(id, generation) = event {
                    let owner = owners.iter().find(|(owner, _)| *owner == id).unwrap();
                    found[owner.1] = generation.ids;
                }
            }
        }
        assert_eq!(found, alone, "{order:?}");
    }
}
