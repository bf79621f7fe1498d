//! Saddle-point densities of the binomial and the gamma distribution (C. Loader, "Fast and
//! accurate computation of binomial probabilities", 2000).
//!
//! The textbook form subtracts numbers of size n ln n to find one of size 1; this form has no
//! such subtraction, so the logarithm of a density is good to a few units in the last place.

use std::f64::consts::PI;

/// ln(n!) - [ln(sqrt(2 pi n)) + n ln n - n], the error of Stirling's formula, for n > 0.
pub(super) fn stirling_error(n: f64) -> f64 {
    // Below 16 the series converges too slowly; ln gamma there is a difference of small numbers.
    if n < 16.0 {
        return statrs::function::gamma::ln_gamma(n + 1.0) - (n + 0.5) * n.ln() + n
            - 0.5 * (2.0 * PI).ln();
    }
    let square = n * n;
    (1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square)
            / square)
        / n
}

/// x ln(x / m) + m - x, the deviance term, without cancellation when x is near m.
pub(super) fn deviance(x: f64, m: f64) -> f64 {
    if x == 0.0 {
        return m;
    }
    if (x - m).abs() < 0.1 * (x + m) {
        let v = (x - m) / (x + m);
        let mut sum = (x - m) * v;
        let mut term = 2.0 * x * v;
        for j in 1..1000 {
            term *= v * v;
            let next = sum + term / f64::from(2 * j + 1);
            if next == sum {
                return next;
            }
            sum = next;
        }
        return sum;
    }
    x * (x / m).ln() + m - x
}

/// ln of the binomial probability of exactly `k` in `n` at rate `p`, for 0 <= k <= n and
/// 0 < p < 1.
pub(super) fn ln_binomial_density(k: f64, n: f64, p: f64) -> f64 {
    let q = 1.0 - p;
    if k == 0.0 {
        return n * (-p).ln_1p();
    }
    if k == n {
        return n * p.ln();
    }
    let rest = n - k;
    stirling_error(n)
        - stirling_error(k)
        - stirling_error(rest)
        - deviance(k, n * p)
        - deviance(rest, n * q)
        - 0.5 * ((2.0 * PI * k).ln() + (-k / n).ln_1p())
}

/// ln of x^a e^-x / gamma(a + 1), the Poisson probability of `a` at mean `x`, for a > 0, x > 0.
pub(super) fn ln_poisson_density(a: f64, x: f64) -> f64 {
    -stirling_error(a) - deviance(a, x) - 0.5 * (2.0 * PI * a).ln()
}
