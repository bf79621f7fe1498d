//! Rows that cannot be sampled, chains that the kernels do not have.

use std::sync::Arc;

use greenmark::sample::kernel::Batch;
use greenmark::sample::{Chain, Draw, History, SamplingOptions};
use greenmark::scheme::Step;
use greenmark::token::TokenSet;
use serde_json::{Value, json};

use crate::emulator::IN_ORDER;
use crate::request::{Launch, Request, run};

const LAUNCH: Launch = Launch { schedule: IN_ORDER, dense: false, gap: 0 };

#[test]
fn a_row_that_fails_leaves_the_others_alone() {
    let good = || Request::new(json!({}), &[], Step::KEEP, vec![0.5, 1.0, 2.0, 3.0]);
    let with = |logits: [f32; 4]| Request::new(json!({}), &[], Step::KEEP, logits.to_vec());
    let banned = json!({ "logit_bias": { "0": "-inf", "1": "-inf" }, "bad_words": [[2], [3]] });
    let mut requests = vec![
        good(),
        with([f32::NAN, 1.0, f32::INFINITY, f32::NAN]),
        good(),
        with([f32::NEG_INFINITY; 4]),
        Request::new(banned, &[], Step::KEEP, vec![0.5, 1.0, 2.0, 3.0]),
        good(),
    ];
    let (found, _) = run(&mut requests, LAUNCH);
    let message = |index: usize| found[index].as_ref().unwrap_err().to_string();
    assert!(message(1).contains("2 of 4 logits are NaN"), "{}", message(1));
    assert!(message(3).contains("the model"), "{}", message(3));
    assert!(message(4).contains("bad_words"), "{}", message(4));
    let alone = format!("{:?}", run(&mut [good()], LAUNCH).0[0]);
    for index in [0, 2, 5] {
        assert_eq!(format!("{:?}", found[index]), alone);
    }
}

#[test]
fn absent_members_are_refused_by_name() {
    let refusal = |options: Value| {
        let options: SamplingOptions = serde_json::from_value(options).unwrap();
        let chain = Chain::new(options, 8, &[], Arc::new(TokenSet::empty(8))).unwrap();
        let draw = Draw { seed: 1, sample: 0, step: 0 };
        let mut batch = Batch::new(8);
        let pushed = batch.push(&chain, &History::new(&[]), &Step::KEEP, draw, 0);
        assert_eq!(pushed.is_err(), chain.check_kernels().is_err());
        chain.check_kernels().map_err(|error| error.to_string())
    };
    let message =
        refusal(json!({ "mirostat": { "mode": 2, "tau": 5.0, "eta": 0.1 } })).unwrap_err();
    assert!(message.contains("mirostat") && message.contains("--sampler cpu"), "{message}");
    let order = "top_k;repetition;watermark";
    let message =
        refusal(json!({ "order": order, "top_k": 4, "repetition_penalty": 1.2 })).unwrap_err();
    assert!(message.contains("repetition behind top_k"), "{message}");
    // Any order among truncations and temperature is theirs.
    let order = "repetition;typical;top_k;temperature;top_p;watermark";
    let options =
        json!({ "order": order, "top_k": 4, "typical_p": 0.9, "temperature": 0.7, "top_p": 0.9 });
    refusal(options).unwrap();
}
