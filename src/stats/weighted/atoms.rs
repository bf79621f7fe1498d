//! The sum over outcomes themselves, where the tilted law has few enough: few trials, few
//! different weights, or a value so near the largest sum that few trials can be missing.
//!
//! The trials are split in two halves. Outcomes of a half are listed with their tilted
//! probabilities; what is too rare to matter is left out and accounted for. Each outcome of one
//! half then meets those of the other that reach the value together with it.

use super::TailBounds;
use super::inversion::Tilted;
use super::tilt::{Sum, TiltedRate};

/// A half has at most this many outcomes.
const MOST: usize = 1 << 16;

/// Outcomes of a half below a tilted probability are left out: the first of these that leaves few
/// enough. What is left out may matter where the value lies in a wide gap between outcomes, so
/// nothing is left out that need not be.
const RARE: [f64; 4] = [1e-300, 1e-60, 1e-30, 1e-15];

/// Some trials together: sums and tilted probabilities.
struct Outcomes {
    outcomes: Vec<(f64, f64)>,
    /// The tilted probability that was left out.
    dropped: f64,
}

/// The tail to rounding, or `None` when there are too many outcomes.
pub(super) fn bounds(sum: &Sum) -> Option<TailBounds> {
    let tilted = Tilted::new(sum);
    let likely = groups(sum, tilted.theta(), RARE[3]);
    let entropy: f64 = likely.iter().map(Outcomes::entropy).sum();
    if entropy > 2.0 * (MOST as f64).ln() + 8.0 {
        return None;
    }
    let halves = RARE.into_iter().find_map(|rare| halves(sum, tilted.theta(), rare))?;
    Some(meet(sum, &tilted, halves))
}

/// The outcomes of two halves of the trials, or `None` when there are too many.
fn halves(sum: &Sum, theta: f64, rare: f64) -> Option<[Outcomes; 2]> {
    let mut groups = groups(sum, theta, rare);
    // The widest first, each to the half that has fewer outcomes: the halves stay even.
    groups.sort_by_key(|group| std::cmp::Reverse(group.outcomes.len()));
    let mut halves = [Outcomes::none(), Outcomes::none()];
    for group in &groups {
        let smaller = usize::from(halves[1].outcomes.len() < halves[0].outcomes.len());
        halves[smaller].add(group, rare)?;
    }
    Some(halves)
}

/// The sum over all pairs that reach the value.
fn meet(sum: &Sum, tilted: &Tilted<'_>, halves: [Outcomes; 2]) -> TailBounds {
    let theta = tilted.theta();
    let [left, mut right] = halves;
    right.outcomes.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    // From each outcome up: the mean of e^(-theta (value - that outcome)).
    let (mut above, mut mean) = (f64::INFINITY, 0.0);
    for (value, probability) in &mut right.outcomes {
        if mean > 0.0 {
            mean *= (-theta * (above - *value)).exp();
        }
        mean += *probability;
        (above, *probability) = (*value, mean);
    }
    let found_from = |reach: f64| -> f64 {
        let pairs = left.outcomes.iter().filter_map(|&(value, probability)| {
            let reaching = right.outcomes.partition_point(|other| value + other.0 >= reach);
            let (other, mean) = right.outcomes[reaching.checked_sub(1)?];
            Some(probability * mean * (-theta * (value + other - sum.reach())).exp())
        });
        pairs.sum()
    };
    let outcomes = (left.outcomes.len() + right.outcomes.len() + sum.len()) as f64;
    let shift = (sum.len() as f64 + 16.0) * theta * sum.total();
    let rounding = f64::EPSILON * (16.0 * outcomes + shift);
    // The tolerance for ties is twice what rounding can shift, so the upper bound needs no more.
    let lower = found_from(sum.certain_reach()) * (1.0 - rounding);
    // Each outcome may have lost a factor to underflow.
    let underflow = outcomes * f64::MIN_POSITIVE;
    let upper =
        found_from(sum.reach()) * (1.0 + rounding) + left.dropped + right.dropped + underflow;
    let (lower, upper) = tilted.of_means(lower, upper);
    TailBounds::exact(lower, upper)
}

impl Outcomes {
    fn none() -> Self {
        Self { outcomes: vec![(0.0, 1.0)], dropped: 0.0 }
    }

    /// In nats: e to its power is about the number of outcomes that matter.
    fn entropy(&self) -> f64 {
        self.outcomes.iter().map(|(_, p)| if *p > 0.0 { -p * p.ln() } else { 0.0 }).sum()
    }

    /// Adds what a group of trials may add.
    fn add(&mut self, group: &Self, rare: f64) -> Option<()> {
        let mut next = Vec::new();
        for &(value, probability) in &self.outcomes {
            for &(more, share) in &group.outcomes {
                let joint = probability * share;
                if joint >= rare {
                    next.push((value + more, joint));
                } else {
                    // 0 is underflow here.
                    self.dropped += joint.max(f64::MIN_POSITIVE);
                }
            }
            if next.len() > MOST {
                return None;
            }
        }
        self.dropped += group.dropped;
        self.outcomes = next;
        Some(())
    }
}

/// The trials of equal weight together: what they add, and its tilted probability.
fn groups(sum: &Sum, theta: f64, rare: f64) -> Vec<Outcomes> {
    let mut trials: Vec<(f64, TiltedRate)> =
        sum.trials().iter().map(|trial| trial.weight).zip(sum.tilted_rates(theta)).collect();
    trials.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.success.total_cmp(&b.1.success)));
    trials.chunk_by(|a, b| a.0 == b.0).map(|trials| group(trials, 0.01 * rare)).collect()
}

/// The number of successes of some trials, times their weight: one convolution a trial.
fn group(trials: &[(f64, TiltedRate)], rare: f64) -> Outcomes {
    let (mut counts, mut first, mut dropped) = (vec![1.0], 0, 0.0);
    for &(_, rate) in trials {
        let mut carried = 0.0;
        for count in &mut counts {
            let success = *count * rate.success;
            *count = *count * rate.failure + carried;
            carried = success;
        }
        counts.push(carried);
        // What is rare stays rare: it is cut off at both ends.
        let negligible = |count: &&f64| **count < rare;
        let low = counts.iter().take_while(negligible).count();
        let high = counts.iter().rev().take_while(negligible).count();
        dropped += (low + high) as f64 * rare;
        counts.truncate(counts.len() - high);
        counts.drain(..low);
        first += low;
    }
    let weight = trials[0].0;
    let outcomes = (first..).zip(counts).map(|(count, p)| (count as f64 * weight, p)).collect();
    Outcomes { outcomes, dropped }
}
