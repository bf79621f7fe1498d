//! The upper tail of the normal distribution, in log space.
//!
//! Used for thresholds given as z. No verdict rests on it: counts have exact tails.

use std::f64::consts::PI;

/// P(Z >= z), to about 1e-15 relative; it underflows to 0 near z = 38.5.
#[must_use]
pub fn normal_upper(z: f64) -> f64 {
    if z < -1.0 {
        return 1.0 - normal_upper(-z);
    }
    if z < 1.0 { 0.5 - centre(z) } else { ln_normal_upper(z).exp() }
}

/// ln P(Z >= z) for any finite z.
#[must_use]
pub fn ln_normal_upper(z: f64) -> f64 {
    if z < -1.0 {
        // Near certainty the smaller tail holds the digits.
        return (-normal_upper(-z)).ln_1p();
    }
    if z < 1.0 {
        return normal_upper(z).ln();
    }
    // Laplace's continued fraction of Mills' ratio from its far end; its error falls as
    // exp(-2 z sqrt(2 levels)), so 400 levels are exact to double precision at z = 1.
    let mut ratio = z;
    for level in (1..=400).rev() {
        ratio = z + f64::from(level) / ratio;
    }
    ln_density(z) - ratio.ln()
}

fn ln_density(z: f64) -> f64 {
    -0.5 * z * z - 0.5 * (2.0 * PI).ln()
}

/// P(0 <= Z < z) by the density times the sum of z^(2k+1) / (1 * 3 * ... * (2k+1)), for |z| < 1.
fn centre(z: f64) -> f64 {
    let (mut sum, mut term, mut odd) = (z, z, 1.0);
    loop {
        odd += 2.0;
        term *= z * z / odd;
        let next = sum + term;
        if next == sum {
            return sum * ln_density(z).exp();
        }
        sum = next;
    }
}
