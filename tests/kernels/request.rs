//! Requests of every kind over one vocabulary, run by the chain and by the kernels.

use std::sync::Arc;

use greenmark::sample::kernel::Batch;
use greenmark::sample::{Chain, Draw, History, Outcome, SamplingOptions, Scratch};
use greenmark::scheme::Step;
use greenmark::token::{TokenId, TokenSet};
use greenmark::{Error, Result};
use serde_json::Value;

use crate::emulator::{DeviceHistory, Schedule, sample};
use crate::kinds::{logits, options, step};
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
