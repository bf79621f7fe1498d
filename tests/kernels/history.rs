//! Penalties over many steps: the device counts the tokens that it draws.

use greenmark::sample::Draw;
use greenmark::scheme::Step;
use serde_json::{Value, json};

use crate::emulator::IN_ORDER;
use crate::random::Random;
use crate::request::{Launch, Request, assert_same, run};

/// Few ids, so that they come again.
const VOCAB: usize = 40;

fn sixty_steps(options: Value) {
    let mut random = Random::new(21);
    let prompt = [3, 3, 7, 39, 0, 3];
    let mut requests = vec![Request::new(options, &prompt, Step::KEEP, vec![0.0; VOCAB])];
    let mut drawn = Vec::new();
    for step in 0..60 {
        requests[0].logits = (0..VOCAB).map(|_| random.normal() as f32).collect();
        requests[0].draw = Draw { seed: 5, sample: 1, step };
        let expected = requests[0].expected();
        let (found, _) = run(&mut requests, Launch { schedule: IN_ORDER, dense: false, gap: 0 });
        assert_same(&found[0], &expected, &requests[0]);
        let outcome = expected.unwrap();
        let Request { chain, history, .. } = &mut requests[0];
        chain.accept(history, &outcome);
        drawn.push(outcome.token);
    }
    drawn.sort_unstable();
    drawn.dedup();
    assert!(drawn.len() > 5 && drawn.len() < 60, "tokens repeat: {drawn:?}");
}

#[test]
fn counts_of_prompt_and_output_are_kept_apart() {
    sixty_steps(json!({ "repetition_penalty": 1.4 }));
    sixty_steps(json!({ "frequency_penalty": 0.3 }));
    sixty_steps(json!({ "presence_penalty": 0.9, "order": "vllm" }));
    sixty_steps(
        json!({ "repetition_penalty": 1.2, "frequency_penalty": 0.2, "presence_penalty": -0.4 }),
    );
}

#[test]
fn windows_forget() {
    for window in [1, 2, 7, 66] {
        sixty_steps(json!({
            "repetition_penalty": 1.5, "frequency_penalty": 0.5, "presence_penalty": 0.2,
            "penalty_last_n": window,
        }));
    }
    sixty_steps(json!({ "repetition_penalty": 1.5, "order": "llama.cpp" }));
    sixty_steps(json!({ "repetition_penalty": 1.5, "penalty_last_n": 0 }));
}

#[test]
fn members_that_the_host_computes_act_beside_counts() {
    sixty_steps(json!({
        "no_repeat_ngram_size": 3, "dry": { "multiplier": 0.8, "base": 1.75, "allowed_length": 2, "sequence_breakers": [[7]] },
        "bad_words": [[5], [3, 4]], "min_tokens": 30, "repetition_penalty": 1.1, "top_k": 12,
    }));
}

/// A window that has seen more than it holds is what it would be from the start.
#[test]
fn a_full_window_holds_what_it_should() {
    let options = json!({ "frequency_penalty": 1.0, "penalty_last_n": 3 });
    let mut request = Request::new(options, &[1, 2, 2, 9, 2], Step::KEEP, vec![0.0; VOCAB]);
    let words = request.device.as_mut().unwrap().words();
    // Head, a bit per id in two words, two counts per id, the window.
    assert_eq!(&words[..6], &[3, 3, 0, 0, 1 << 2 | 1 << 9, 0]);
    let counts = &words[6..6 + 2 * VOCAB];
    assert_eq!((counts[4], counts[5], counts[18], counts[19]), (2, 2, 1, 1));
    assert_eq!(counts.iter().sum::<u32>(), 6);
    assert_eq!(&words[6 + 2 * VOCAB..], &[2, 9, 2]);
}
