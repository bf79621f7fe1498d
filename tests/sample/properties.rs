//! What holds for every input.

use greenmark::sample::{History, Scratch};
use greenmark::scheme::Step;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::reference;
use crate::support::{chain, draw, kept, options, trace};

/// Logits on a grid, so that decisions are ties or clear.
fn grid() -> impl Strategy<Value = Vec<f32>> {
    proptest::collection::vec((-2048i16..2048).prop_map(|l| f32::from(l) / 256.0), 1..400)
}

/// Any mixture of truncation members and penalties.
fn request() -> impl Strategy<Value = Value> {
    let some = |strategy: std::ops::Range<f64>| proptest::option::of(strategy);
    (
        (some(0.3..2.5), some(0.0..1.0), some(0.0..0.3), some(0.0..1.0)),
        (some(0.0..0.02), some(0.0..0.02), some(0.5..4.0), some(0.5..2.0)),
        (proptest::option::of(0i64..60), some(-1.0..1.0), some(-1.0..1.0)),
        prop_oneof![Just("transformers"), Just("vllm"), Just("llama.cpp")],
    )
        .prop_map(|(a, b, c, order)| {
            let mut request = json!({
                "temperature": a.0, "top_p": a.1, "min_p": a.2, "typical_p": a.3,
                "epsilon_cutoff": b.0, "eta_cutoff": b.1, "top_n_sigma": b.2,
                "repetition_penalty": b.3, "top_k": c.0, "presence_penalty": c.1,
                "frequency_penalty": c.2, "order": order,
            });
            request.as_object_mut().expect("fields").retain(|_, value| !value.is_null());
            request
        })
}

proptest! {
    // Floats of two computations are compared, so a rare input at a boundary may part them: the
    // inputs are the same in every run.
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(2026),
        ..ProptestConfig::default()
    })]

    #[test]
    fn something_survives_and_the_mass_is_one(logits in grid(), request in request(), seed: u64) {
        let chain = chain(options(request), logits.len());
        let history = History::new(&[0, 0, 3, 5, 7]);
        let trace = chain.trace(&logits, &history, Step::KEEP, draw(seed), &mut Scratch::new());
        let trace = trace.expect("a token");
        let total: f64 = trace.probabilities.values().sum();
        prop_assert!((total - 1.0).abs() < 1e-10, "{}", total);
        prop_assert!(trace.probabilities.contains_key(&trace.outcome.token));
        prop_assert_eq!(trace.probabilities.len(), trace.outcome.survivors as usize);
        prop_assert!(trace.outcome.entropy >= 0.0);
        prop_assert!(trace.outcome.entropy <= f64::from(trace.outcome.survivors).ln() + 1e-9);
        let p = trace.probabilities[&trace.outcome.token];
        prop_assert!((f64::from(trace.outcome.logprob) - p.ln()).abs() < 1e-5);
        // Each member leaves a subset of what it got.
        for pair in trace.stages.windows(2) {
            prop_assert!(pair[1].kept.iter().all(|id| pair[0].kept.binary_search(id).is_ok()));
        }
    }

    #[test]
    fn the_chain_is_the_reference(logits in grid(), request in request(), seed: u64) {
        let given = options(request);
        let (prompt, generated) = ([0, 0, 3, 5, 7, 2, 2, 2], [3, 9]);
        let mut history = History::new(&prompt);
        for &id in &generated {
            history.push(id);
        }
        let trace = chain(given.clone(), logits.len())
            .trace(&logits, &history, Step::KEEP, draw(seed), &mut Scratch::new())
            .expect("a token");
        let inputs = reference::Inputs {
            options: &given, prompt: &prompt, generated: &generated, end_ids: &[],
            xtc_acts: false, mu: 0.0,
        };
        let expected = reference::apply(&inputs, &logits);
        let p = reference::softmax(&expected);
        // A token that only one of them keeps stands at a boundary and is rare: the sums differ
        // in the last digits of f32.
        let ids: Vec<u32> = expected.iter().map(|&(id, _)| id).collect();
        let found = kept(&trace);
        let differing = ids.iter().filter(|id| !found.contains(id)).count()
            + found.iter().filter(|id| !ids.contains(id)).count();
        if differing == 0 {
            for (id, p) in ids.iter().zip(p) {
                prop_assert!((trace.probabilities[id] - p).abs() < 1e-6);
            }
        } else {
            prop_assert!(differing == 1, "{:?} {:?}", ids, found);
        }
    }

    #[test]
    fn top_k_keeps_exactly_k_of_the_best(logits in grid(), k in 1usize..450) {
        let found = kept(&trace(json!({ "top_k": k }), &logits));
        let mut order: Vec<u32> = (0..).take(logits.len()).collect();
        order.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]).then(a.cmp(&b)));
        order.truncate(k);
        order.sort_unstable();
        prop_assert_eq!(found, order);
    }

    #[test]
    fn top_p_keeps_the_shortest_prefix(logits in grid(), p in 0.0f64..1.0) {
        let found = trace(json!({ "top_p": p }), &logits);
        let full = trace(json!({}), &logits).probabilities;
        let mass: f64 = found.probabilities.keys().map(|id| full[id]).sum();
        prop_assert!(mass >= p - 2e-7, "{} < {}", mass, p);
        let least = found.probabilities.keys().map(|id| full[id]).fold(1.0, f64::min);
        prop_assert!(found.probabilities.len() == 1 || mass - least < p);
        // A prefix: nothing dropped is likelier than what was kept.
        prop_assert!(full.iter().all(|(id, &p)| p <= least || found.probabilities.contains_key(id)));
    }

    #[test]
    fn a_permuted_vocabulary_has_the_same_masses(logits in grid(), rotation in 0usize..400, request in request()) {
        // Without ties only the order of summation changes. Penalties are bound to ids.
        let mut distinct = logits;
        distinct.sort_by(f32::total_cmp);
        distinct.dedup();
        let mut request = request;
        for name in ["repetition_penalty", "presence_penalty", "frequency_penalty"] {
            request.as_object_mut().expect("fields").remove(name);
        }
        let rotation = rotation % distinct.len();
        let mut rotated = distinct.clone();
        rotated.rotate_left(rotation);
        let (one, other) = (trace(request.clone(), &distinct), trace(request, &rotated));
        prop_assert_eq!(one.outcome.entropy.to_bits(), other.outcome.entropy.to_bits());
        prop_assert_eq!(
            one.outcome.max_probability.to_bits(),
            other.outcome.max_probability.to_bits()
        );
        prop_assert_eq!(one.probabilities.len(), other.probabilities.len());
        for (id, p) in &other.probabilities {
            let original = u32::try_from((*id as usize + rotation) % distinct.len()).expect("small");
            prop_assert_eq!(p.to_bits(), one.probabilities[&original].to_bits());
        }
    }
}
