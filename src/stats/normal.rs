//! The upper tail of the normal distribution, in log space, and its inverse.
//!
//! Used for thresholds given as z. No verdict rests on it: counts have exact tails.

use std::f64::consts::{PI, SQRT_2};

use statrs::function::erf::erfc;

/// P(Z >= z), which underflows to 0 near z = 38.5.
#[must_use]
pub fn normal_upper(z: f64) -> f64 {
    0.5 * erfc(z / SQRT_2)
}

/// ln P(Z >= z) for any finite z.
#[must_use]
pub fn ln_normal_upper(z: f64) -> f64 {
    if z < 6.0 {
        return normal_upper(z).ln();
    }
    // Laplace's continued fraction of Mills' ratio, evaluated from its far end; at z >= 6 sixty
    // levels are exact to double precision.
    let mut ratio = z;
    for level in (1..=60).rev() {
        ratio = z + f64::from(level) / ratio;
    }
    -0.5 * z * z - 0.5 * (2.0 * PI).ln() - ratio.ln()
}

/// The z whose upper tail has the natural logarithm `ln_p`, which is below 0.
///
/// Found by Newton's method on the log tail, which is concave and nearly quadratic.
#[must_use]
pub fn normal_quantile_upper(ln_p: f64) -> f64 {
    let mut z = if ln_p > -0.693 { 0.0 } else { (-2.0 * ln_p).sqrt() };
    for _ in 0..60 {
        let value = ln_normal_upper(z);
        let ln_density = -0.5 * z * z - 0.5 * (2.0 * PI).ln();
        let step = (value - ln_p) / (ln_density - value).exp();
        z += step;
        if step.abs() <= 1e-14 * z.abs().max(1.0) {
            break;
        }
    }
    z
}
