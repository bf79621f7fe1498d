//! A row's result depends on the row alone.

use crate::emulator::{IN_ORDER, Schedule};
use crate::random::Random;
use crate::request::{Launch, Request, random_request, run};

const VOCAB: usize = 9_000;

fn requests(count: usize) -> Vec<Request> {
    let mut random = Random::new(11);
    (0..count).map(|_| random_request(&mut random, VOCAB)).collect()
}

fn outcomes(requests: &mut [Request], schedule: Schedule, gap: usize) -> Vec<String> {
    let (found, _) = run(requests, Launch { schedule, dense: false, gap });
    found.into_iter().map(|outcome| format!("{outcome:?}")).collect()
}

#[test]
fn neither_companions_nor_place_matter() {
    const COUNT: usize = 24;
    let together = outcomes(&mut requests(COUNT), IN_ORDER, 0);
    for size in [1, 7] {
        let mut apart = Vec::new();
        for group in requests(COUNT).chunks_mut(size) {
            apart.extend(outcomes(group, IN_ORDER, 0));
        }
        assert_eq!(apart, together, "in batches of {size}");
    }
    let mut reversed = requests(COUNT);
    reversed.reverse();
    let mut found = outcomes(&mut reversed, IN_ORDER, 0);
    found.reverse();
    assert_eq!(found, together);
}

#[test]
fn neither_schedule_nor_alignment_matters() {
    let expected = outcomes(&mut requests(8), IN_ORDER, 0);
    for seed in [1, 99, 12_345] {
        for workers in [1, 2] {
            let schedule = Schedule { workers, seed };
            assert_eq!(outcomes(&mut requests(8), schedule, seed as usize % 5), expected);
        }
    }
}
