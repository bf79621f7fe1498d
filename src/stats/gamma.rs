//! The upper tail of the gamma distribution: the null of a sum of exponential scores.

use super::loader::ln_poisson_density;

/// ln P(S >= x) for S ~ Gamma(shape, 1), that is ln of the regularised incomplete gamma function
/// Q(shape, x).
///
/// A sum of n independent Exp(1) scores has shape n. Above the mean Legendre's continued
/// fraction is used, below it the power series of the lower tail; both start from the same
/// saddle-point density.
#[must_use]
pub fn ln_gamma_upper(shape: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if shape <= 0.0 {
        return f64::NEG_INFINITY;
    }
    // x^a e^-x / gamma(a), from the Poisson density x^a e^-x / gamma(a + 1).
    let ln_front = ln_poisson_density(shape, x) + shape.ln();
    if x > shape + 1.0 {
        ln_front + continued_fraction(shape, x).ln()
    } else {
        let ln_lower = ln_front + lower_series(shape, x).ln();
        // Rounding may leave a lower tail a hair above 1.
        (-ln_lower.min(0.0).exp()).ln_1p()
    }
}

/// gamma(a, x) / (x^a e^-x) by its power series.
fn lower_series(shape: f64, x: f64) -> f64 {
    let mut term = 1.0 / shape;
    let mut sum = term;
    let mut a = shape;
    loop {
        a += 1.0;
        term *= x / a;
        let next = sum + term;
        if next == sum {
            return sum;
        }
        sum = next;
    }
}

/// Gamma(a, x) / (x^a e^-x) by Legendre's continued fraction (modified Lentz).
fn continued_fraction(shape: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - shape;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut value = d;
    for i in 1..10_000_000_u32 {
        let i = f64::from(i);
        let a = -i * (i - shape);
        b += 2.0;
        d = a * d + b;
        if d.abs() < TINY {
            d = TINY;
        }
        c = b + a / c;
        if c.abs() < TINY {
            c = TINY;
        }
        d = 1.0 / d;
        let factor = d * c;
        value *= factor;
        if (factor - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}
