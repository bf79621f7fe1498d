//! Random rows of every kind, through every path.

use greenmark::sample::kernel::Batch;
use greenmark::scheme::Step;
use serde_json::json;

use crate::emulator::{DeviceHistory, IN_ORDER, Schedule, sample};
use crate::random::Random;
use crate::request::{Launch, Request, assert_same, random_request, run};

/// The largest vocabulary of the families (Qwen).
const LARGEST: usize = 151_936;

/// `count` rows, in batches over one vocabulary each.
fn rows(seed: u64, count: usize) {
    let mut random = Random::new(seed);
    let (mut done, mut dense, mut failed) = (0, 0, 0);
    while done < count {
        // Every size is as likely as its double.
        let vocab = ((LARGEST as f64).powf(random.unit())).ceil() as usize;
        let vocab =
            if random.once_in(30) { *random.pick(&[1, 4096, 4097, LARGEST]) } else { vocab };
        let batch = 1 + random.below(if vocab > 20_000 { 3 } else { 12 });
        let mut requests: Vec<_> = (0..batch).map(|_| random_request(&mut random, vocab)).collect();
        let expected: Vec<_> = requests.iter().map(Request::expected).collect();
        let launch = Launch {
            schedule: Schedule { workers: 1 + (done % 2) as u32, seed: random.next() },
            dense: random.once_in(6),
            gap: random.below(3),
        };
        let (found, took_dense) = run(&mut requests, launch);
        for ((found, expected), request) in found.iter().zip(&expected).zip(&requests) {
            assert_same(found, expected, request);
            failed += usize::from(expected.is_err());
        }
        done += batch;
        dense += took_dense;
    }
    println!("{done} rows, {dense} of them by one block, {failed} refused by both");
    // The test is worth something only while all three kinds occur.
    assert!(dense > done / 50 && dense < done * 3 / 4 && failed > done / 100);
}

#[test]
fn two_thousand_five_hundred_rows_equal_the_chain() {
    rows(1, 2_500);
}

#[test]
fn five_thousand_rows_equal_the_chain() {
    rows(2, 2_500);
}

#[test]
fn seven_thousand_five_hundred_rows_equal_the_chain() {
    rows(3, 2_500);
}

#[test]
fn ten_thousand_rows_equal_the_chain() {
    rows(4, 2_500);
}

/// The same rows by the path of their kind and by one block.
#[test]
fn paths_agree() {
    let mut random = Random::new(5);
    for _ in 0..60 {
        let vocab = 1 + random.below(9_000);
        let seed = random.next();
        let both = [false, true].map(|dense| {
            let mut random = Random::new(seed);
            let mut requests = vec![random_request(&mut random, vocab)];
            let launch = Launch { schedule: IN_ORDER, dense, gap: 0 };
            let (found, _) = run(&mut requests, launch);
            found.into_iter().map(|outcome| format!("{outcome:?}")).collect::<Vec<_>>()
        });
        assert_eq!(both[0], both[1]);
    }
}

/// Beside the outcome, the entropy of the model's own distribution: that of a chain without
/// members.
#[test]
fn raw_entropy_is_that_of_the_logits_as_given() {
    let mut random = Random::new(6);
    let mut checked = 0;
    while checked < 40 {
        let vocab = 1 + random.below(6_000);
        let request = random_request(&mut random, vocab);
        let plain = Request::new(json!({}), &[], Step::KEEP, request.logits.clone());
        let Ok(expected) = plain.expected() else { continue };
        let mut batch = Batch::new(vocab);
        let mut device = request.device;
        let address = device.as_mut().map_or(0, DeviceHistory::address);
        batch.push(&request.chain, &request.history, &request.step, request.draw, address).unwrap();
        let result = sample(&batch, &request.logits, vocab, vocab, IN_ORDER)[0];
        // A row whose edits ban every token has no outcome.
        if batch.outcome(0, &result).is_ok() {
            assert_eq!(result.raw_entropy().to_bits(), expected.entropy.to_bits());
            checked += 1;
        }
    }
}
