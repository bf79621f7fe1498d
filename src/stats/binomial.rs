//! The exact upper tail of the binomial distribution, for any count.

use super::loader::ln_binomial_density;

/// ln P(X >= k) for X ~ Binomial(n, p), exact to about 1e-13 relative in the probability.
///
/// The density at the end of the tail comes from a saddle-point form; the other terms follow by
/// their exact ratios. The smaller of the two tails is summed, so nothing cancels. The number of
/// terms is of the order of sqrt(n) around the mean and small in a far tail.
///
/// `p` outside (0, 1) is taken at its limit: every trial fails or every trial succeeds. A `p` above
/// 0 and below 2.3e-308 (a subnormal number) is taken as that: the result is then an upper bound.
#[must_use]
pub fn ln_binomial_upper(n: u64, k: u64, p: f64) -> f64 {
    if k == 0 {
        return 0.0;
    }
    if k > n || p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return 0.0;
    }
    // 1 / p must be finite.
    let p = p.max(f64::MIN_POSITIVE);
    let trials = n as f64;
    if k as f64 > trials * p {
        ln_binomial_density(k as f64, trials, p) + upper_series(n, k, p).ln()
    } else {
        // P(X <= k - 1), by symmetry an upper tail of the failures.
        let failures = n - k + 1;
        let q = 1.0 - p;
        let ln_lower =
            ln_binomial_density((k - 1) as f64, trials, p) + upper_series(n, failures, q).ln();
        (-ln_lower.exp()).ln_1p()
    }
}

/// The smallest count k with ln P(X >= k) <= `ln_alpha` for X ~ Binomial(n, p); n + 1 when even n is
/// not that rare.
#[must_use]
pub fn critical_count(n: u64, p: f64, ln_alpha: f64) -> u64 {
    let (mut low, mut high) = (0, n + 1);
    while low < high {
        let middle = u64::midpoint(low, high);
        // Rarity grows with the count.
        if ln_binomial_upper(n, middle, p) <= ln_alpha {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The sum of P(X = j) / P(X = k) over j >= k.
fn upper_series(n: u64, k: u64, p: f64) -> f64 {
    let odds = p / (1.0 - p);
    let mut sum = 1.0;
    let mut term = 1.0;
    for j in k..n {
        term *= (n - j) as f64 / (j + 1) as f64 * odds;
        let next = sum + term;
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}
