//! Teacher forcing: it sees what generation saw, in stretches and windows of any size.

use std::sync::Arc;

use greenmark::detect::entropy::{GreenListBias, TokenUncertainty};
use greenmark::engine::{Device, Forcing, Model, Observe, Request, Session};
use greenmark::error::Error;
use greenmark::prf::Key;
use greenmark::profile::{Context, ContextWidth, Delta, Gamma, PromptContext, Repeats};
use greenmark::sample::{Chain, MirostatMode, MirostatOptions, SamplingOptions};
use greenmark::scheme::{GreenList, Marker};
use greenmark::text::Tokenizer;
use greenmark::token::TokenSet;

use crate::fixtures::{Noise, checkpoint, floats, ids, json_file, with_config};
use crate::real_model::MODEL;

const BIAS: GreenListBias = GreenListBias { gamma: 0.5, delta: 2.0 };

fn chain(options: SamplingOptions, vocab: usize) -> Chain {
    let never_marked = TokenSet::from_ids(vocab, [0, 1, 2]).unwrap();
    Chain::new(options, vocab, &[2], Arc::new(never_marked)).unwrap()
}

fn close(found: &TokenUncertainty, expected: &TokenUncertainty, tolerance: f64) {
    let numbers = |token: &TokenUncertainty| {
        let chances = token.chances.unwrap();
        [
            token.entropy,
            chances.spike_entropy,
            chances.probability,
            chances.step_green,
            chances.token_green,
        ]
    };
    for (found, expected) in numbers(found).into_iter().zip(numbers(expected)) {
        assert!((found - expected).abs() <= tolerance, "{found} {expected}");
    }
}

#[test]
fn a_text_read_back_has_the_uncertainties_of_its_generation() {
    let model = Model::load(checkpoint("llama"), Device::Cpu).unwrap();
    let tokenizer = Tokenizer::open(checkpoint("tokenizer-300.json")).unwrap();
    let cases = [
        SamplingOptions::default(),
        SamplingOptions { temperature: Some(0.7), top_k: Some(20), ..SamplingOptions::default() },
        SamplingOptions { repetition_penalty: Some(1.3), ..SamplingOptions::default() },
        SamplingOptions { temperature: Some(0.0), ..SamplingOptions::default() },
        SamplingOptions {
            mirostat: Some(MirostatOptions::new(MirostatMode::try_from(2).unwrap())),
            ..SamplingOptions::default()
        },
    ];
    for options in cases {
        let options = SamplingOptions { min_tokens: Some(80), ..options };
        let chain = Arc::new(chain(options, 300));
        let width = ContextWidth::new(1).unwrap();
        let scheme =
            GreenList::new(&Key::from_bytes([5; 32]), Gamma::DEFAULT, Delta::DEFAULT, width);
        let rule = Context { width, prompt: PromptContext::Tail, repeats: Repeats::Mark };
        let request = Request {
            prompt: tokenizer.encode_ids("the rain").unwrap(),
            chain: Arc::clone(&chain),
            marker: Some(Marker::new(Arc::new(scheme), rule)),
            seed: 7,
            sample: 0,
            max_tokens: 80,
            stop: Vec::new(),
            end_ids: vec![2],
            observe: Observe { chances: Some(BIAS), ..Observe::default() },
        };
        let prompt = request.prompt.clone();
        let text = Session::new(&model, &tokenizer)
            .run(vec![request.clone()], |_, _| Ok::<(), Error>(()))
            .unwrap()
            .remove(0);
        // Measuring changes no token.
        let plain = Session::new(&model, &tokenizer)
            .run(vec![Request { observe: Observe::default(), ..request }], |_, _| {
                Ok::<(), Error>(())
            })
            .unwrap()
            .remove(0);
        assert_eq!(plain.ids, text.ids);
        assert!(plain.steps.iter().all(|step| step.chances.is_none()));

        let forcing = Forcing { model: &model, chain: &chain, bias: Some(BIAS), seed: 7 };
        let found = forcing.uncertainties(&prompt, &text.ids, |_| ()).unwrap();
        assert_eq!(found.len(), text.ids.len());
        for (found, step) in found.iter().zip(&text.steps) {
            close(&found.unwrap(), &step.uncertainty(), 1e-9);
        }
    }
}

#[test]
fn windows_over_a_long_text_agree_with_one_pass_until_the_context_ends() {
    let folder = with_config("llama", |config| config["max_position_embeddings"] = 48.into());
    let short = Model::load(folder.path(), Device::Cpu).unwrap();
    assert_eq!(short.info().context_length, 48);
    let model = Model::load(checkpoint("llama"), Device::Cpu).unwrap();
    let chain = chain(SamplingOptions::default(), 300);
    let ids = Noise(3).ids(200, 300);
    let read = |model: &Model, prompt: usize| {
        let forcing = Forcing { model, chain: &chain, bias: Some(BIAS), seed: 0 };
        forcing.uncertainties(&ids[..prompt], &ids[prompt..], |_| ()).unwrap()
    };
    let whole = read(&model, 0);
    assert_eq!(whole.len(), 200);
    // Of the first token without a prompt a model says nothing.
    assert!(whole[0].is_none() && whole[1..].iter().all(Option::is_some));
    // A prompt shifts nothing; one longer than the context only loses its beginning.
    for prompt in [1, 30] {
        assert_eq!(read(&model, prompt), whole[prompt..]);
        assert_eq!(read(&short, prompt).len(), 200 - prompt);
    }
    assert_eq!(read(&short, 100).len(), 100);
    // Up to the context both are the same; behind it the window sees a part.
    let windows = read(&short, 0);
    assert_eq!(windows.len(), 200);
    assert_eq!(windows[..=48], whole[..=48]);
    assert!(windows[50..].iter().all(Option::is_some));
    // Position 60 sees the 24 tokens that the second window starts with, and those since.
    let from = 48 - 24;
    let fresh = Forcing { model: &model, chain: &chain, bias: Some(BIAS), seed: 0 }
        .uncertainties(&ids[from..=from], &ids[from + 1..], |_| ())
        .unwrap();
    assert_eq!(windows[60], fresh[60 - from - 1]);
    assert_eq!(read(&model, 200), []);
}

#[test]
fn the_default_model_has_the_entropies_of_transformers() {
    let vectors = json_file(concat!(env!("CARGO_MANIFEST_DIR"), "/data/vectors/smollm2.json"));
    let vocab = MODEL.info().vocab_size;
    let chain = chain(SamplingOptions::default(), vocab);
    let forcing = Forcing { model: &MODEL, chain: &chain, bias: Some(BIAS), seed: 0 };
    let (mut count, mut entropy, mut surprisal) = (0.0, 0.0, 0.0);
    for case in vectors["cases"].as_array().unwrap() {
        let tokens = ids(&case["ids"]);
        let found = forcing.uncertainties(&[], &tokens, |_| ()).unwrap();
        let (entropies, next) = (floats(&case["entropy_nats"]), floats(&case["logprob_of_next"]));
        for (index, token) in found.iter().enumerate().skip(1) {
            let token = token.unwrap();
            count += 1.0;
            entropy += (token.entropy - entropies[index - 1]).abs();
            surprisal += (token.chances.unwrap().probability.ln() - next[index - 1]).abs();
        }
    }
    println!(
        "mean differences: entropy {:.4}, surprisal {:.4}",
        entropy / count,
        surprisal / count
    );
    assert!(count > 50.0 && entropy / count < 0.05 && surprisal / count < 0.05);
}
