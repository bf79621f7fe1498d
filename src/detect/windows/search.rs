//! The window with the smallest p, in O(T log T).
//!
//! Maximum-sum segments (Kadane) under a geometric grid of tilts give the candidates; the best of
//! them are followed to their own tilt, and then each end is moved over all places while the other
//! stands. Only windows that can win by Chernoff's exponent are given to the exact tail.

use super::tilt::{Tilt, exponent, slack};
use super::{Scores, Window};

/// Candidates that are refined.
const REFINED: usize = 6;

/// Rounds of refinement; each that changes nothing is the last.
const ROUNDS: usize = 6;

/// The best window of at least `shortest` tokens inside `from..to`.
pub(super) fn best(scores: &Scores, from: usize, to: usize, shortest: usize) -> Option<Window> {
    let shortest = shortest.max(1);
    if to - from < shortest {
        return None;
    }
    let sums = &scores.sums[from..=to];
    let largest = sums.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    let mut candidates: Vec<Window> = Vec::new();
    for tilt in Tilt::grid(scores.null, to - from, largest) {
        let (start, end) = segment(sums, tilt, shortest);
        if above_mean(scores, from + start, from + end)
            && !candidates.iter().any(|w| (w.start, w.end) == (from + start, from + end))
        {
            candidates.push(scores.window(from + start, from + end));
        }
    }
    candidates.sort_by(|a, b| a.p.ln().total_cmp(&b.p.ln()));
    candidates.truncate(REFINED);
    candidates
        .into_iter()
        .map(|window| refine(scores, window, from, to, shortest))
        .min_by(|a, b| a.p.ln().total_cmp(&b.p.ln()))
}

fn above_mean(scores: &Scores, start: usize, end: usize) -> bool {
    Tilt::of_window(scores.null, end - start, scores.sums[end] - scores.sums[start]).is_some()
}

/// The segment of at least `shortest` tokens with the largest tilted score.
fn segment(sums: &[f64], tilt: Tilt, shortest: usize) -> (usize, usize) {
    let height = |place: usize| tilt.slope * sums[place] - tilt.cost * place as f64;
    let (mut lowest, mut start) = (f64::INFINITY, 0);
    let (mut most, mut best) = (f64::NEG_INFINITY, (0, shortest));
    for end in shortest..sums.len() {
        let low = height(end - shortest);
        if low < lowest {
            (lowest, start) = (low, end - shortest);
        }
        let score = height(end) - lowest;
        if score > most {
            (most, best) = (score, (start, end));
        }
    }
    best
}

/// Follows a window to its own tilt and moves its ends while that helps.
fn refine(scores: &Scores, window: Window, from: usize, to: usize, shortest: usize) -> Window {
    let mut best = window;
    for _ in 0..ROUNDS {
        let before = best;
        let sum = scores.sums[best.end] - scores.sums[best.start];
        if let Some(tilt) = Tilt::of_window(scores.null, best.scored(), sum) {
            let (start, end) = segment(&scores.sums[from..=to], tilt, shortest);
            consider(scores, from + start, from + end, &mut best);
        }
        let start = best.start;
        for end in start + shortest..=to {
            consider(scores, start, end, &mut best);
        }
        let end = best.end;
        for start in from..=end - shortest {
            consider(scores, start, end, &mut best);
        }
        if best == before {
            break;
        }
    }
    best
}

/// Takes the window if its exact p is smaller than the best.
fn consider(scores: &Scores, start: usize, end: usize, best: &mut Window) {
    let (n, sum) = ((end - start) as f64, scores.sums[end] - scores.sums[start]);
    if exponent(scores.null, n, sum) + slack(scores.null, n, sum) >= -best.p.ln() {
        let window = scores.window(start, end);
        if window.p < best.p {
            *best = window;
        }
    }
}
