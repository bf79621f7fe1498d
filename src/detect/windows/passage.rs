//! The chance that a walk reaches the boundary at which a window's p is at most t.
//!
//! Both computations are exact but for two roundings, each toward a larger chance: states far from
//! the boundary are lumped at a state nearer to it, and the last digits of the sum are rounded up.

use crate::stats::{LogProbability, ln_binomial_upper, ln_gamma_upper};

/// Standard deviations from the mean, away from the boundary, behind which states are lumped. The
/// mass there is below 1e-6 and has that far to go.
const LUMPED_BEHIND: f64 = 5.0;

/// What rounding may have lost of a sum of positive terms, a step of the walk each.
const ROUNDING: f64 = 1.0 + 1e-9;

/// A bound of P(some window of at least `shortest` of `scored` tokens has a count with a tail of at
/// most `p`), each token green with chance `rate`.
///
/// The window with the smallest p has no green token before it, since that token would make it
/// rarer still, and when no length is too short it begins with a green one. So only starts behind a
/// red token count, and the walk is independent of that token.
///
/// The bound covers the unmarked windows of a partly marked text too. There a window may also
/// follow a marked token, which no start of an unmarked window stands on: its share pays for that,
/// given a run of at least rate / (1 - rate) marked tokens, so any run for rates up to one half.
pub(super) fn counts(rate: f64, scored: usize, shortest: usize, p: LogProbability) -> f64 {
    let red = 1.0 - rate;
    let critical = |n: usize, from: u64| {
        let rare = ln_binomial_upper(n as u64, from, rate) <= p.ln();
        // One more token raises the critical count by 0 or 1.
        if rare { from } else { from + 1 }
    };
    // `walks[i]` is the chance to hold `floor + i` green tokens without having passed.
    let mut walks = vec![1.0_f64];
    let (mut floor, mut boundary) = (0_usize, 1_u64);
    let (mut passed, mut total) = (0.0, 0.0);
    for n in 1..=scored {
        boundary = critical(n, boundary);
        walks.push(0.0);
        for i in (1..walks.len()).rev() {
            walks[i] = red * walks[i] + rate * walks[i - 1];
        }
        walks[0] *= if n == 1 && shortest == 1 { 0.0 } else { red };
        if n >= shortest {
            while !walks.is_empty() && (floor + walks.len()) as u64 > boundary {
                passed += walks.pop().unwrap_or(0.0);
            }
            total += if n == scored { passed } else { red * passed };
        }
        let lowest = lumped_below(n as f64, rate);
        if lowest > floor && lowest - floor < walks.len() {
            let lumped: f64 = walks.drain(..lowest - floor).sum();
            walks[0] += lumped;
            floor = lowest;
        }
    }
    total * ROUNDING
}

/// The count below which walks of `n` steps are lumped.
fn lumped_below(n: f64, rate: f64) -> usize {
    let low = n * rate - LUMPED_BEHIND * (n * rate * (1.0 - rate)).sqrt();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "floor of a count")]
    let low = low.max(0.0) as usize;
    low
}

/// A bound of P(some window of at least `shortest` of `scored` tokens has a sum with a tail of at
/// most `p`), each score Exp(1).
///
/// The scores are the gaps of a Poisson process: the sum of n of them reaches b when fewer than n
/// events fall before b. So the walk is the number of events at the critical sums b(1) < b(2) < ...
/// of the lengths, and its steps are Poisson.
pub(super) fn sums(scored: usize, shortest: usize, p: LogProbability) -> f64 {
    let mut boundary = critical_sum(shortest, 0.0, p);
    // `walks[i]` is the chance of `n + i` events before the boundary of length n without having
    // passed; the first boundary is passed with chance p.
    let mut passed = p.ln().exp();
    let mut walks: Vec<f64> =
        poisson(boundary, width(shortest, boundary) + shortest).split_off(shortest);
    let mut total = passed;
    for n in shortest + 1..=scored {
        let next = critical_sum(n, boundary, p);
        let steps = poisson(next - boundary, STEPS);
        boundary = next;
        let width = width(n, boundary);
        let mut after = vec![0.0; width + 1];
        for (i, &mass) in walks.iter().enumerate() {
            for (events, chance) in steps.iter().enumerate() {
                // Before, `i` stood for n - 1 + i events.
                match (i + events).checked_sub(1) {
                    Some(place) => after[place.min(width)] += mass * chance,
                    None => passed += mass * chance,
                }
            }
        }
        walks = after;
        total += passed;
    }
    total * ROUNDING
}

/// Events of one step that are told apart; more count as this many, which is nearer the boundary.
const STEPS: usize = 24;

/// Number of states kept above the boundary's own.
fn width(n: usize, boundary: f64) -> usize {
    let high = boundary + LUMPED_BEHIND * boundary.sqrt() - n as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small, positive")]
    let high = high.max(1.0) as usize;
    high
}

/// The chances of 0, 1, ..., `most` events at this mean; the last holds all that is left.
fn poisson(mean: f64, most: usize) -> Vec<f64> {
    let mut chances = Vec::with_capacity(most + 1);
    let (mut ln_chance, mut below) = (-mean, 0.0);
    for events in 0..most {
        let chance = ln_chance.exp();
        chances.push(chance);
        below += chance;
        ln_chance += (mean / (events + 1) as f64).ln();
    }
    chances.push((1.0_f64 - below).max(0.0));
    chances
}

/// A sum just below the one whose tail after `n` scores is `p`; it lies above `from`.
fn critical_sum(n: usize, from: f64, p: LogProbability) -> f64 {
    let over = |x: f64| ln_gamma_upper(n as f64, x) - p.ln();
    let (mut low, mut high) = (from, from + 4.0);
    let mut at_low = over(low);
    let mut at_high = over(high);
    while at_high > 0.0 {
        (low, at_low) = (high, at_high);
        high += (high - from).max(4.0);
        at_high = over(high);
    }
    // False position; halving the kept end's weight keeps both ends moving (Illinois).
    let mut moved_low = None;
    for _ in 0..100 {
        if high - low <= 1e-10 * high {
            break;
        }
        let middle = low + (high - low) * (at_low / (at_low - at_high)).clamp(0.01, 0.99);
        let at_middle = over(middle);
        if at_middle >= 0.0 {
            (low, at_low) = (middle, at_middle);
            if moved_low == Some(true) {
                at_high *= 0.5;
            }
            moved_low = Some(true);
        } else {
            (high, at_high) = (middle, at_middle);
            if moved_low == Some(false) {
                at_low *= 0.5;
            }
            moved_low = Some(false);
        }
    }
    low
}
