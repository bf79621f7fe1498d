//! What a step of the sampling chain costs at a vocabulary of 49,152, with and without the mark,
//! and how fast a detector scores ids. Run: `cargo bench --bench chain --profile dev`.
//!
//! Each row is the best of 300 steps in one run; compare rows of one run with each other only.

use std::sync::Arc;
use std::time::{Duration, Instant};

use greenmark::detect::gather;
use greenmark::prf::Key;
use greenmark::profile::{ContextWidth, Delta, Gamma};
use greenmark::sample::{Chain, Draw, History, SamplingOptions, Scratch};
use greenmark::scheme::{GreenList, Gumbel, Scheme, Step};
use greenmark::token::TokenSet;

const VOCAB: usize = 49_152;
const STEPS: u64 = 300;

/// Logits of a shape like a language model's: most of them small, a few large.
fn logits(seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut unit = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (f64::from(state) + 0.5) / 4_294_967_296.0
    };
    (0..VOCAB)
        .map(|_| {
            // A sum of uniforms is close to normal.
            let normal: f64 = (0..12).map(|_| unit()).sum::<f64>() - 6.0;
            #[expect(clippy::cast_possible_truncation, reason = "logits are f32")]
            let logit = (2.4 * normal) as f32;
            logit
        })
        .collect()
}

fn best_step(options: &SamplingOptions, step: &Step, rows: &[Vec<f32>]) -> Duration {
    let nobody = Arc::new(TokenSet::empty(VOCAB));
    let chain = match Chain::new(options.clone(), VOCAB, &[2], nobody) {
        Ok(chain) => chain,
        Err(error) => panic!("{error}"),
    };
    let history = History::new(&(0..500).collect::<Vec<_>>());
    let mut scratch = Scratch::new();
    let mut best = Duration::MAX;
    for index in 0..STEPS {
        let row = &rows[usize::try_from(index).unwrap_or(0) % rows.len()];
        let draw = Draw { seed: 1, sample: 0, step: index };
        let started = Instant::now();
        let outcome = chain.step(row, &history, step.clone(), draw, &mut scratch);
        best = best.min(started.elapsed());
        assert!(outcome.is_ok(), "{outcome:?}");
    }
    best
}

fn main() {
    let rows: Vec<Vec<f32>> = (1..=16).map(logits).collect();
    let key = Key::from_bytes([4; 32]);
    let width = ContextWidth::new(1).unwrap_or_else(|error| panic!("{error}"));
    let green = GreenList::new(&key, Gamma::DEFAULT, Delta::DEFAULT, width);
    let gumbel = Gumbel::new(&key, width);
    let none = SamplingOptions::default;
    let cases = [
        ("no truncation", none()),
        ("temperature 0.8", SamplingOptions { temperature: Some(0.8), ..none() }),
        ("top-p 0.9", SamplingOptions { top_p: Some(0.9), ..none() }),
        ("top-k 50, top-p 0.9", SamplingOptions { top_k: Some(50), top_p: Some(0.9), ..none() }),
        ("min-p 0.05", SamplingOptions { min_p: Some(0.05), ..none() }),
        ("typical 0.9", SamplingOptions { typical_p: Some(0.9), ..none() }),
        (
            "repetition 1.1, temperature 0.7",
            SamplingOptions { repetition_penalty: Some(1.1), temperature: Some(0.7), ..none() },
        ),
        ("greedy", SamplingOptions { temperature: Some(0.0), ..none() }),
    ];
    println!("{:<34} {:>9} {:>11} {:>9}", "µs per step", "no mark", "green-list", "gumbel");
    for (name, options) in cases {
        let micros = |step: &Step| best_step(&options, step, &rows).as_secs_f64() * 1e6;
        let keyed = if name == "greedy" {
            "refused".to_owned()
        } else {
            format!("{:.0}", micros(&gumbel.step(&[7])))
        };
        let (plain, marked) = (micros(&Step::KEEP), micros(&green.step(&[7])));
        println!("{name:<34} {plain:>9.0} {marked:>11.0} {keyed:>9}");
    }

    let ids: Vec<u32> = (0..100_000u32).map(|i| i.wrapping_mul(2_654_435_761) % 49_152).collect();
    let nobody = TokenSet::empty(VOCAB);
    for (name, scheme) in [("green-list", &green as &dyn Scheme), ("gumbel", &gumbel)] {
        let started = Instant::now();
        let evidence = gather(scheme, &nobody, &[], &ids);
        let rate = ids.len() as f64 / started.elapsed().as_secs_f64() / 1e6;
        println!("detect {name}: {rate:.2} million ids/s ({} scored)", evidence.scored);
    }
}
