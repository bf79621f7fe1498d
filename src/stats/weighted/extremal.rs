//! The extremal majorant and minorant of a truncated exponential (S. W. Graham and J. D. Vaaler,
//! "A class of extremal functions for the Fourier transform", Transactions of the AMS 265, 1981).
//!
//! For E(y) = e^(-lambda y) at y >= 0 and 0 below, there are entire functions M and L of
//! exponential type 2 pi with L <= E <= M on the whole line, whose integrals exceed and fall short
//! of nothing better: they differ by 1 where the integral is 1 / lambda. Their Fourier transforms
//! vanish outside (-1, 1), so their mean under the law of a sum needs its characteristic function
//! at those frequencies only, and no rounding of any weight.
//!
//! With s(y) = (sin pi y / pi)^2,
//!
//! ```text
//! M(y) = s(y) [ sum_{n >= 0} e^(-lambda n) / (y - n)^2
//!               - lambda sum_{n >= 1} e^(-lambda n) / (y - n) + lambda / (e^lambda - 1) / y ]
//! L(y) = M(y) - s(y) / y^2
//! ```
//!
//! Both meet E at every whole number (L from the left at 0), so for a sum on the lattice of whole
//! numbers M is exact.

use std::f64::consts::TAU;

/// The Fourier transform of M at 0 <= t < 1: the real and the imaginary part.
///
/// A function of type 2 pi is its samples and those of its derivative, spread by (1 - |t|) and
/// sgn(t) / (2 pi i).
pub(super) fn majorant_transform(lambda: f64, t: f64) -> (f64, f64) {
    // A = sum over n >= 0 of e^(-lambda n) u^n = 1 / (1 - e^-lambda u) for u = e^(-2 pi i t).
    let (sine, cosine) = (TAU * t).sin_cos();
    let half = (0.5 * TAU * t).sin();
    let decay = (-lambda).exp();
    let (re, im) = (-(-lambda).exp_m1() + 2.0 * decay * half * half, decay * sine);
    let norm = re * re + im * im;
    let (a_re, a_im) = (re / norm, -im / norm);
    if t == 0.0 {
        return (a_re, 0.0);
    }
    // A - 1 = e^-lambda u A, and the derivatives' samples sum to lambda (1 / (e^lambda - 1) - (A - 1)).
    let (u_re, u_im) = (cosine, -sine);
    let (rest_re, rest_im) =
        (decay * (u_re * a_re - u_im * a_im), decay * (u_re * a_im + u_im * a_re));
    let at_zero = if lambda < 700.0 { lambda.exp_m1().recip() } else { 0.0 };
    let (slope_re, slope_im) = (lambda * (at_zero - rest_re), -lambda * rest_im);
    // (x + i y) / (2 pi i) = (y - i x) / 2 pi.
    ((1.0 - t) * a_re + slope_im / TAU, (1.0 - t) * a_im - slope_re / TAU)
}

/// The Fourier transform of M - L, Fejer's kernel, at 0 <= t <= 1.
pub(super) fn gap_transform(t: f64) -> f64 {
    1.0 - t
}

/// A bound of the size of [`majorant_transform`] without its angles: M is not negative, so no
/// value exceeds the one at 0; and |A| <= e^(lambda / 2) / (2 sin(pi t)), lambda |A| <= 1 + lambda.
pub(super) fn majorant_size(lambda: f64, t: f64) -> f64 {
    let at_zero = -(-lambda).exp_m1().recip();
    let further = (0.5 * lambda).exp() / (4.0 * t.min(0.5)) + (2.0 + lambda) / TAU;
    at_zero.min(further)
}
