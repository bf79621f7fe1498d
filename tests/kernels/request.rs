//! Requests of every kind over one vocabulary, run by the chain and by the kernels.

use std::sync::Arc;

use greenmark::prf::ChaCha8Stream;
use greenmark::sample::kernel::Batch;
use greenmark::sample::{Chain, Draw, History, Outcome, SamplingOptions, Scratch};
use greenmark::scheme::{Action, Gate, Membership, Scope, Step, Uniforms};
use greenmark::token::{TokenId, TokenSet};
use greenmark::{Error, Result};
use serde_json::{Value, json};

use crate::emulator::{DeviceHistory, Schedule, sample};
use crate::random::Random;

/// One row of a batch.
pub(crate) struct Request {
    pub(crate) chain: Chain,
    pub(crate) history: History,
    pub(crate) device: Option<DeviceHistory>,
    pub(crate) step: Step,
    pub(crate) draw: Draw,
    pub(crate) logits: Vec<f32>,
    /// What failed requests are described by.
    pub(crate) options: Value,
}

impl Request {
    pub(crate) fn new(options: Value, prompt: &[TokenId], step: Step, logits: Vec<f32>) -> Self {
        let vocab = logits.len();
        let ends: Vec<TokenId> = if vocab > 2 { vec![2] } else { Vec::new() };
        let never: Vec<TokenId> = (0..vocab as u32).filter(|id| id % 13 == 2).collect();
        let never_marked = Arc::new(TokenSet::from_ids(vocab, never).unwrap());
        let parsed: SamplingOptions = serde_json::from_value(options.clone()).unwrap();
        let chain = Chain::new(parsed, vocab, &ends, never_marked).unwrap();
        let device = chain.history_shape().map(|shape| DeviceHistory::new(shape, prompt, vocab));
        let draw = Draw { seed: 7, sample: 0, step: 0 };
        Self { chain, history: History::new(prompt), device, step, draw, logits, options }
    }

    /// What the chain says.
    pub(crate) fn expected(&self) -> Result<Outcome> {
        let mut scratch = Scratch::new();
        self.chain.step(&self.logits, &self.history, self.step.clone(), self.draw, &mut scratch)
    }
}

/// How rows are sent through the kernels.
#[derive(Clone, Copy)]
pub(crate) struct Launch {
    pub(crate) schedule: Schedule,
    pub(crate) dense: bool,
    /// Logits between the end of a row and the start of the next.
    pub(crate) gap: usize,
}

/// What the kernels say of each request, and how many rows took the dense path.
pub(crate) fn run(requests: &mut [Request], launch: Launch) -> (Vec<Result<Outcome>>, usize) {
    let vocab = requests[0].logits.len();
    let stride = vocab + launch.gap;
    let mut batch = Batch::new(vocab);
    let mut logits = Vec::with_capacity(requests.len() * stride);
    for (index, request) in requests.iter_mut().enumerate() {
        let address = request.device.as_mut().map_or(0, DeviceHistory::address);
        let Request { chain, history, step, draw, .. } = &*request;
        batch.push(chain, history, step, *draw, address).unwrap();
        if launch.dense {
            batch.force_dense(index);
        }
        logits.extend_from_slice(&request.logits);
        // What stands between rows must not matter.
        logits.extend(std::iter::repeat_n(f32::NAN, launch.gap));
    }
    let results = sample(&batch, &logits, vocab, stride, launch.schedule);
    let dense = results.iter().filter(|result| result.took_dense_path()).count();
    let outcomes =
        results.iter().enumerate().map(|(index, result)| batch.outcome(index, result)).collect();
    (outcomes, dense)
}

/// Fails unless both are the same, bit for bit.
pub(crate) fn assert_same(found: &Result<Outcome>, expected: &Result<Outcome>, request: &Request) {
    let bits = |outcome: &Outcome| {
        (
            (outcome.token, outcome.survivors),
            (outcome.logprob.to_bits(), outcome.raw_logprob.to_bits()),
            (outcome.entropy.to_bits(), outcome.max_probability.to_bits()),
            (outcome.surprisal.to_bits(), outcome.green_mass.map(f64::to_bits)),
        )
    };
    let same = match (found, expected) {
        (Ok(found), Ok(expected)) => bits(found) == bits(expected),
        (Err(found), Err(expected)) => found.to_string() == expected.to_string(),
        _ => false,
    };
    assert!(
        same,
        "kernels {found:?}\nchain   {expected:?}\noptions {}\nstep {:?}\nvocabulary {}, first logits {:?}",
        request.options,
        request.step,
        request.logits.len(),
        &request.logits[..request.logits.len().min(16)]
    );
    if let Err(error) = expected {
        assert!(matches!(error, Error::NonFiniteLogits { .. } | Error::NoTokenAllowed { .. }));
    }
}

/// Logits of a shape: bell curves, ties, constants, spikes, extremes, bans.
pub(crate) fn logits(random: &mut Random, vocab: usize) -> Vec<f32> {
    let scale = *random.pick(&[0.01, 0.5, 2.4, 2.4, 2.4, 6.0, 30.0]);
    let kind = random.below(10);
    let mut row: Vec<f32> = (0..vocab)
        .map(|_| match kind {
            0..=3 => (scale * random.normal()) as f32,
            // Ties, -0 and 0 among them.
            4 => {
                (random.normal() * 2.0).round() as f32
                    * 0.5
                    * if random.once_in(2) { -1.0 } else { 1.0 }
            }
            5 => 3.25,
            6 => (random.normal() * 1e38) as f32,
            7 => f32::from_bits(random.next() as u32 & 0x807f_ffff),
            8 => -40.0 * random.unit() as f32,
            _ => (scale * random.normal()) as f32 - 100.0,
        })
        .collect();
    for value in &mut row {
        if !value.is_finite() {
            *value = f32::MAX;
        }
    }
    if random.once_in(3) {
        for _ in 0..random.below(6) {
            row[random.below(vocab)] = (12.0 + 3.0 * random.normal()) as f32;
        }
    }
    if random.once_in(4) {
        let share = *random.pick(&[0.01, 0.5, 0.99]);
        for value in &mut row {
            if random.unit() < share {
                *value = f32::NEG_INFINITY;
            }
        }
    }
    if random.once_in(12) {
        // All but one are banned.
        let spared = random.below(vocab);
        for (id, value) in row.iter_mut().enumerate() {
            if id != spared {
                *value = f32::NEG_INFINITY;
            }
        }
        row[spared] = if row[spared].is_finite() { row[spared] } else { -0.0 };
    }
    if random.once_in(25) {
        row[random.below(vocab)] = *random.pick(&[f32::NAN, f32::INFINITY]);
    }
    if random.once_in(40) {
        row.fill(f32::NEG_INFINITY);
    }
    row
}

/// Options with every member on in some requests and off in others.
pub(crate) fn options(random: &mut Random, vocab: usize) -> Value {
    let mut options = json!({ "order": random.pick(&["transformers", "vllm", "llama.cpp"]) });
    let crowd = *random.pick(&[12, 4, 2]);
    let mut set = |random: &mut Random, name: &str, value: Value| {
        if random.once_in(crowd) {
            options[name] = value;
        }
    };
    let id = |random: &mut Random| random.below(vocab);
    let temperature = *random.pick(&[0.0, 1e-6, 1e-5, 0.05, 0.3, 0.7, 1.0, 1.3, 2.5, 50.0, 1e30]);
    set(random, "temperature", json!(temperature));
    let k = *random.pick(&[-1i64, 0, 1, 2, 5, 40, 50, 1000, 2048, 3000, 1 << 40]);
    set(random, "top_k", json!(k));
    let p = *random.pick(&[0.0, 0.1, 0.5, 0.9, 0.95, 0.999, 0.999_999_9, 1.0]);
    set(random, "top_p", json!(p));
    let alpha = *random.pick(&[0.0, 1e-6, 0.02, 0.1, 0.5, 1.0]);
    set(random, "min_p", json!(alpha));
    let typical = *random.pick(&[0.0, 0.2, 0.9, 0.99, 1.0]);
    set(random, "typical_p", json!(typical));
    let epsilon = *random.pick(&[0.0, 1e-7, 3e-4, 0.01, 0.5, 1.0]);
    set(random, "epsilon_cutoff", json!(epsilon));
    let eta = *random.pick(&[0.0, 1e-5, 3e-4, 0.01, 1.0]);
    set(random, "eta_cutoff", json!(eta));
    let n = *random.pick(&[0.0, 0.2, 1.0, 2.0, 5.0, 1e300]);
    set(random, "top_n_sigma", json!(n));
    let xtc = json!({ "probability": *random.pick(&[0.0, 0.5, 1.0]), "threshold": *random.pick(&[0.0, 0.001, 0.1, 0.5, 0.9]) });
    set(random, "xtc", xtc);
    let keep = *random.pick(&[1usize, 2, 7, 500, 5000]);
    set(random, "min_tokens_to_keep", json!(keep));
    let penalty = *random.pick(&[0.5, 1.0, 1.2, 1e30]);
    set(random, "repetition_penalty", json!(penalty));
    let presence = *random.pick(&[-1.0, 0.0, 0.7, 1e38]);
    set(random, "presence_penalty", json!(presence));
    let frequency = *random.pick(&[-0.3, 0.0, 0.1, 3e38]);
    set(random, "frequency_penalty", json!(frequency));
    let window = *random.pick(&[0usize, 1, 3, 64, 100_000]);
    set(random, "penalty_last_n", json!(window));
    let size = *random.pick(&[0usize, 1, 2, 3]);
    set(random, "no_repeat_ngram_size", json!(size));
    let dry = json!({ "multiplier": *random.pick(&[0.0, 0.8, 1e308]), "base": *random.pick(&[1.0, 1.75, 1e30]), "allowed_length": 1 + random.below(3), "sequence_breakers": [] });
    set(random, "dry", dry);
    let min_tokens = random.below(3);
    set(random, "min_tokens", json!(min_tokens));
    let words =
        json!([[id(random)], [id(random), id(random)], [1 % vocab, 0, id(random)], [id(random)]]);
    set(random, "bad_words", words);
    let mut bias = serde_json::Map::new();
    for _ in 0..1 + random.below(40) {
        let value = match random.below(4) {
            0 => json!("-inf"),
            1 => json!(3.0e38),
            _ => json!(20.0 * random.unit() - 10.0),
        };
        bias.insert(id(random).to_string(), value);
    }
    set(random, "logit_bias", Value::Object(bias));
    let share = *random.pick(&[0.02, 0.5, 0.98]);
    let mut allowed: Vec<usize> = (0..vocab).filter(|_| random.unit() < share).collect();
    if allowed.is_empty() {
        allowed.push(id(random));
    }
    if random.once_in(4 * crowd) {
        options["allowed_tokens"] = json!(allowed);
    }
    options
}

/// What a scheme may ask for, native schemes and dialects to come.
pub(crate) fn step(random: &mut Random, vocab: usize, greedy: bool) -> Step {
    let mut seed = [0; 32];
    seed.fill_with(|| random.next() as u8);
    let stream = ChaCha8Stream::new(&seed);
    let gate = match random.below(6) {
        0 => Gate::EntropyAbove(3.0 * random.unit()),
        1 => Gate::MaxProbAtMost(random.unit()),
        _ => Gate::Always,
    };
    let membership = if random.once_in(4) {
        let ids: Vec<TokenId> = (0..vocab as u32).filter(|_| random.once_in(2)).collect();
        Membership::Set(Arc::new(TokenSet::from_ids(vocab, ids).unwrap()))
    } else {
        let threshold = *random.pick(&[0, 1, 1 << 30, 1 << 31, u32::MAX]);
        Membership::ChaCha8 { stream: stream.clone(), threshold }
    };
    let scope = match random.below(5) {
        0 => Scope::TopByScore(*random.pick(&[0, 1, 3, 40, 2000, usize::MAX])),
        _ => Scope::Survivors,
    };
    let delta = *random.pick(&[0.0, 2.0, 2.0, 2.0, -1.5, 10.0, 1000.0, 3e38]);
    let action = match random.below(5) {
        0 => Action::Keep,
        1 if !greedy => Action::Race { uniforms: Uniforms::ChaCha8 { stream } },
        _ => Action::Bias { membership, delta, scope },
    };
    Step { gate, action }
}

/// A request over `vocab` ids with everything random.
pub(crate) fn random_request(random: &mut Random, vocab: usize) -> Request {
    let options = options(random, vocab);
    let greedy = options.get("temperature").and_then(Value::as_f64).is_some_and(|t| t < 1e-5);
    let step = step(random, vocab, greedy);
    // A few ids come again and again, so that members that look at repetitions act.
    let spread = vocab.min(*random.pick(&[3, 40, 1 << 20]));
    let prompt: Vec<TokenId> =
        (0..random.below(60)).map(|_| random.below(spread) as TokenId).collect();
    let logits = logits(random, vocab);
    let mut request = Request::new(options, &prompt, step, logits);
    request.draw = Draw {
        seed: random.next(),
        sample: random.below(4) as u32,
        step: random.below(1000) as u64,
    };
    request
}
