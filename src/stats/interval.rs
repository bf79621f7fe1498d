//! Where a count or a rate may lie: exact intervals of the binomial distribution.

use super::{critical_count, ln_binomial_upper};

/// Clopper-Pearson interval of a rate: every rate inside explains `count` successes in `trials`
/// with a tail of at least (1 - `confidence`) / 2 on either side (C. J. Clopper and E. S.
/// Pearson, Biometrika 26, 1934). Its coverage is at least `confidence`.
///
/// `confidence` is a share, for example 0.999; outside (0, 1) it is taken at its limit. Without
/// trials every rate is possible: (0, 1). A count above `trials` is taken as `trials`.
#[must_use]
pub fn clopper_pearson(count: u64, trials: u64, confidence: f64) -> (f64, f64) {
    let count = count.min(trials);
    let ln_tail = ln_one_sided(confidence);
    let lower = lower_limit(count, trials, ln_tail);
    let upper = 1.0 - lower_limit(trials - count, trials, ln_tail);
    (lower, upper)
}

/// The smallest and the largest count of the central `confidence` mass of Binomial(`n`, `p`):
/// each of the two tails beyond them holds at most (1 - `confidence`) / 2.
///
/// `p` outside [0, 1] and `confidence` outside (0, 1) are taken at their limits.
#[must_use]
pub fn binomial_interval(n: u64, p: f64, confidence: f64) -> (u64, u64) {
    let ln_tail = ln_one_sided(confidence);
    let lower = n - largest_central(n, 1.0 - p, ln_tail);
    (lower, largest_central(n, p, ln_tail))
}

/// ln of the mass that one tail may hold.
fn ln_one_sided(confidence: f64) -> f64 {
    ((1.0 - confidence).clamp(0.0, 1.0) / 2.0).ln()
}

/// The smallest k with P(X > k) within the tail.
fn largest_central(n: u64, p: f64, ln_tail: f64) -> u64 {
    // P(X >= 0) is 1, so that the critical count is at least 1 for every tail below that.
    critical_count(n, p, ln_tail).saturating_sub(1)
}

/// The rate at which P(X >= count) equals the tail, by bisection to the last bit.
fn lower_limit(count: u64, trials: u64, ln_tail: f64) -> f64 {
    if count == 0 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0f64, 1.0f64);
    // Small rates lie in many binary orders; a double has 1,075 of them and 52 bits in each.
    for _ in 0..1200 {
        let middle = low.midpoint(high);
        if middle <= low || middle >= high {
            break;
        }
        if ln_binomial_upper(trials, count, middle) <= ln_tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
