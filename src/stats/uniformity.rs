//! Whether samples look uniform: the one-sample Kolmogorov-Smirnov test.
//!
//! For calibration: the randomised p-values of unmarked texts are uniform. No verdict on a text
//! rests on it.

use std::f64::consts::PI;

/// The result of a Kolmogorov-Smirnov test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KolmogorovSmirnov {
    /// The largest distance between the empirical and the uniform distribution function, D.
    pub statistic: f64,
    /// Probability of a distance at least this large when the samples are uniform.
    pub p_value: f64,
}

/// Tests `samples` against the uniform distribution on [0, 1], and sorts them.
///
/// The p-value of at most 100 samples is exact (G. Marsaglia, W. W. Tsang and J. Wang, "Evaluating
/// Kolmogorov's distribution", 2003); beyond, it is Kolmogorov's limit with the correction of J.
/// Vrbik, "Small-sample corrections to Kolmogorov-Smirnov test statistic", 2018, which is within
/// 2e-4. Without samples the distance is 0 and p is 1. A sample that is NaN or outside the
/// interval is as far from uniform as can be: the distance is 1.
pub fn kolmogorov_smirnov(samples: &mut [f64]) -> KolmogorovSmirnov {
    samples.sort_unstable_by(f64::total_cmp);
    let n = samples.len() as f64;
    let mut statistic = 0.0f64;
    for (index, &sample) in samples.iter().enumerate() {
        let before = sample - index as f64 / n;
        let after = (index + 1) as f64 / n - sample;
        let inside = (0.0..=1.0).contains(&sample);
        statistic = if inside { statistic.max(before).max(after) } else { 1.0 };
        if !inside {
            break;
        }
    }
    KolmogorovSmirnov { statistic, p_value: kolmogorov_upper(samples.len(), statistic) }
}

/// P(D >= d) of `n` uniform samples.
fn kolmogorov_upper(n: usize, d: f64) -> f64 {
    let samples = n as f64;
    // No distance is below 1 / 2n, and none above 1.
    if 2.0 * samples * d <= 1.0 {
        return 1.0;
    }
    if d >= 1.0 {
        return 0.0;
    }
    if n <= 100 {
        return (1.0 - kolmogorov_exact(n, d)).clamp(0.0, 1.0);
    }
    let root = samples.sqrt();
    kolmogorov_limit(d * root + 1.0 / (6.0 * root) + (d * root - 1.0) / (4.0 * samples))
}

/// The upper tail of Kolmogorov's distribution, by the series that converges faster.
fn kolmogorov_limit(x: f64) -> f64 {
    if x < 1.0 {
        let unit = (-PI * PI / (8.0 * x * x)).exp();
        let sum: f64 = [1, 9, 25, 49].iter().map(|&k| unit.powi(k)).sum();
        1.0 - (2.0 * PI).sqrt() / x * sum
    } else {
        let unit = (-2.0 * x * x).exp();
        2.0 * (unit - unit.powi(4) + unit.powi(9) - unit.powi(16))
    }
}

/// P(D < d) as an entry of the n-th power of a band matrix, for 1 / 2n < d < 1.
fn kolmogorov_exact(n: usize, d: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 < n d < 100")]
    let k = (n as f64 * d) as usize + 1;
    let (size, gap) = (2 * k - 1, k as f64 - n as f64 * d);
    let mut step = vec![0.0; size * size];
    for row in 0..size {
        for column in 0..size.min(row + 2) {
            step[row * size + column] = 1.0;
        }
    }
    for i in 0..size {
        let exponent = i32::try_from(i + 1).unwrap_or(i32::MAX);
        step[i * size] -= gap.powi(exponent);
        step[(size - 1) * size + i] -= gap.powi(i32::try_from(size - i).unwrap_or(i32::MAX));
    }
    step[(size - 1) * size] += (2.0 * gap - 1.0).max(0.0).powi(i32::try_from(size).unwrap_or(0));
    for row in 0..size {
        for column in 0..size.min(row + 1) {
            // Divided by the factorial of the distance from the upper diagonal.
            for factor in 1..=(row - column + 1) {
                step[row * size + column] /= factor as f64;
            }
        }
    }
    let mut power = vec![0.0; size * size];
    for i in 0..size {
        power[i * size + i] = 1.0;
    }
    // n! / n^n, factor by factor, keeps every entry in range.
    for i in 1..=n {
        power = product(&power, &step, size);
        for entry in &mut power {
            *entry *= i as f64 / n as f64;
        }
    }
    power[(k - 1) * size + k - 1]
}

fn product(left: &[f64], right: &[f64], size: usize) -> Vec<f64> {
    let mut result = vec![0.0; size * size];
    for row in 0..size {
        for inner in 0..size {
            let factor = left[row * size + inner];
            if factor != 0.0 {
                for column in 0..size {
                    result[row * size + column] += factor * right[inner * size + column];
                }
            }
        }
    }
    result
}
