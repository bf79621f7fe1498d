//! From 64 random bits to an exponential variate, with a logarithm of its own.
//!
//! The bits of a key stream stand for the uniform number u = (bits + 1/2) / 2^64, which is never
//! 0 or 1. Generation and detection need -ln u and -ln(1 - u) to full relative accuracy at both
//! ends and with the same bits on every platform, so the logarithm here uses only IEEE 754
//! additions, multiplications and divisions, which round alike everywhere; the platform's `ln`
//! does not. It knows nothing of schemes or of the sampling chain, which both use it.

use std::f64::consts::FRAC_1_SQRT_2;

/// ln 2 to 33 significant bits, so that its product with an exponent of at most 11 bits is exact.
const LN2_HI: f64 = f64::from_bits(0x3fe6_2e42_fef0_0000);
/// ln 2 - `LN2_HI`.
const LN2_LO: f64 = f64::from_bits(0x3dd4_73de_6af2_78ed);

/// 2^-64.
const CELL: f64 = 1.0 / (4_294_967_296.0 * 4_294_967_296.0);

/// The natural logarithm, the same bits on every platform; relative error below 5e-16.
///
/// `ln(0)` is negative infinity, `ln` of a negative number or NaN is NaN.
#[must_use]
pub fn ln(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x == f64::INFINITY {
        return x;
    }
    // A subnormal number is scaled by 2^54 so that its exponent field is meaningful.
    let (scaled, shift) =
        if x < f64::MIN_POSITIVE { (x * 18_014_398_509_481_984.0, 54.0) } else { (x, 0.0) };
    let bits = scaled.to_bits();
    let mut exponent = (bits >> 52) as f64 - 1023.0 - shift;
    let mut mantissa = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    // The mantissa is brought to [sqrt(1/2), sqrt(2)], so that the exponent's part of the result
    // never cancels against it.
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1.0;
    }
    let fraction = twice_atanh((mantissa - 1.0) / (mantissa + 1.0));
    exponent * LN2_HI + (fraction + exponent * LN2_LO)
}

/// -ln u for u = (`bits` + 1/2) / 2^64: an Exp(1) variate in [2.7e-20, 45.1].
///
/// Relative error below 1e-15 over the whole range, the end u -> 1 included.
#[must_use]
pub fn neg_ln_uniform(bits: u64) -> f64 {
    let u = (bits as f64 + 0.5) * CELL;
    if u < FRAC_1_SQRT_2 {
        return -ln(u);
    }
    // Near 1 the number u has lost the bits that matter; 1 - u still has them, and
    // -ln(1 - v) = 2 atanh(v / (2 - v)).
    let v = (!bits as f64 + 0.5) * CELL;
    twice_atanh(v / (2.0 - v))
}

/// -ln(1 - u) for u = (`bits` + 1/2) / 2^64: the score of a token under the exponential race,
/// Exp(1) for a text without the mark.
///
/// Exact by symmetry: 1 - u is the uniform number of the complement of the bits.
#[must_use]
pub fn neg_ln_one_minus_uniform(bits: u64) -> f64 {
    neg_ln_uniform(!bits)
}

/// 2 atanh(s) for |s| <= 0.1716 = (sqrt(2) - 1) / (sqrt(2) + 1), by its Taylor series; the first
/// term left out is below 1e-18 of the result.
fn twice_atanh(s: f64) -> f64 {
    const COEFFICIENTS: [f64; 10] = [
        1.0 / 21.0,
        1.0 / 19.0,
        1.0 / 17.0,
        1.0 / 15.0,
        1.0 / 13.0,
        1.0 / 11.0,
        1.0 / 9.0,
        1.0 / 7.0,
        1.0 / 5.0,
        1.0 / 3.0,
    ];
    let square = s * s;
    let tail = COEFFICIENTS.iter().fold(0.0, |sum, coefficient| sum * square + coefficient);
    let double = s + s;
    double + double * (square * tail)
}
