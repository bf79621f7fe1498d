//! Logits, options and steps of every kind, at random; `benches/gpu` asks a device the same.

use std::sync::Arc;

use greenmark::prf::ChaCha8Stream;
use greenmark::scheme::{Action, Gate, Membership, Scope, Step, Uniforms};
use greenmark::token::{TokenId, TokenSet};
use serde_json::{Value, json};

use crate::random::Random;

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
    for _ in 0..=random.below(40) {
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
