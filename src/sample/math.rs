//! The one arithmetic of the chain: exponential, logarithm, probability mass and rank keys.
//!
//! Everything here is built from IEEE 754 additions, multiplications, divisions and integer
//! operations in a written order, without fused multiply-add and without the platform's libm, so
//! that the same inputs give the same bits everywhere. Sums of probabilities are sums of
//! integers, so they do not depend on the order of summation either: a device kernel that adds
//! the same masses in any order reproduces the chain bit for bit.
//!
//! # Probability mass
//!
//! A candidate with logit l, where m is the largest logit, has the mass
//! round([`MASS_ONE`] * exp(l - m)), an integer between 0 and [`MASS_ONE`] = 2^43; the difference
//! l - m is taken in f32. The sum over [`MAX_CANDIDATES`] = 2^20 candidates is at most 2^63 and
//! fits a u64. One unit is 2^-43 = 1.1e-13 of the best candidate's probability; candidates more
//! than 30.5 nats below the best have mass 0. They remain candidates: the draw looks at logits,
//! not at masses.
//!
//! Error of a probability: rounding to the grid contributes at most 2^-44 per candidate, so at
//! most 2^-24 = 6e-8 to a sum of 2^20 of them and below 3e-9 for a vocabulary of 50,000; the
//! exponential itself is good to 3e-15. Both are below the tolerance of 1e-7 that the
//! truncation members grant.
//!
//! Not here: the exponential variate of the draw, which schemes need too (`prf`).

pub use crate::prf::ln;

use std::f64::consts::{LN_2, LOG2_E};

/// The mass of the best candidate: 2^43.
pub const MASS_ONE: u64 = 1 << 43;

/// The largest number of candidates whose masses may be summed: 2^20.
pub const MAX_CANDIDATES: usize = 1 << 20;

/// ln 2 to 33 significant bits: its product with an exponent is exact.
const LN2_HI: f64 = f64::from_bits(0x3fe6_2e42_fef0_0000);
/// ln 2 - `LN2_HI`.
const LN2_LO: f64 = f64::from_bits(0x3dd4_73de_6af2_78ed);

/// 1.5 * 2^52: adding it rounds a number below 2^51 in magnitude to an integer, which then
/// stands in the low bits of the sum (two's complement).
const ROUND_F64: f64 = 6_755_399_441_055_744.0;

/// 2^52: adding it to a number in [0, 2^52) rounds it to an integer, which then stands in the
/// low 52 bits of the sum.
const ROUND_UNSIGNED: f64 = 4_503_599_627_370_496.0;
const LOW_52: u64 = (1 << 52) - 1;

/// Below this exponent the mass rounds to 0: 2^43 * exp(-31) < 0.31.
const LOWEST: f64 = -31.0;

/// exp(r) for |r| <= 0.3466 as the Taylor polynomial of degree 13 (truncation below 5e-18), and
/// the exponent k of the power of two in exp(x) = 2^k exp(r), still in the low bits of a sum.
#[inline]
fn reduce(x: f64) -> (f64, u64) {
    let shifted = x * LOG2_E + ROUND_F64;
    let k = shifted - ROUND_F64;
    let r = (x - k * LN2_HI) - k * LN2_LO;
    let mut sum = 1.0 / 6_227_020_800.0;
    sum = sum * r + 1.0 / 479_001_600.0;
    sum = sum * r + 1.0 / 39_916_800.0;
    sum = sum * r + 1.0 / 3_628_800.0;
    sum = sum * r + 1.0 / 362_880.0;
    sum = sum * r + 1.0 / 40_320.0;
    sum = sum * r + 1.0 / 5_040.0;
    sum = sum * r + 1.0 / 720.0;
    sum = sum * r + 1.0 / 120.0;
    sum = sum * r + 1.0 / 24.0;
    sum = sum * r + 1.0 / 6.0;
    sum = sum * r + 0.5;
    // The two largest terms come last, so that their rounding is all that remains.
    (1.0 + (r + r * r * sum), shifted.to_bits())
}

/// The exponential; relative error below 5e-16 where the result is normal.
///
/// Overflows to infinity above 709.78 and goes through the subnormal numbers to 0 below -745.2.
#[must_use]
pub fn exp(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let (value, shifted) = reduce(x.clamp(-746.0, 710.0));
    // k lies in [-1076, 1024], beyond the exponents of normal numbers, so 2^k is applied in two
    // halves that are normal.
    let k = shifted.wrapping_sub(ROUND_F64.to_bits()).cast_signed();
    let half = k >> 1;
    value * power_of_two(half) * power_of_two(k - half)
}

/// 2^k for k in [-1022, 1023].
fn power_of_two(k: i64) -> f64 {
    f64::from_bits((k + 1023).cast_unsigned() << 52)
}

/// The exponential in f32; relative error below 1.5e-7 where the result is normal.
///
/// For kernels outside the chain (softmax of attention, activations): it has no branch and is
/// compiled to vector code in a loop. Overflows to infinity above 88.73, is 0 below -104.
#[must_use]
#[inline]
pub fn exp_f32(x: f32) -> f32 {
    // 1.5 * 2^23, as in the double precision.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts; the first has 15 significant bits.
    const HI: f32 = f32::from_bits(0x3f31_7200);
    const LO: f32 = f32::from_bits(0x35bf_be8e);
    let clamped = x.clamp(-104.0, 89.0);
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (clamped - k * HI) - k * LO;
    let mut sum = 1.0 / 5_040.0;
    sum = sum * r + 1.0 / 720.0;
    sum = sum * r + 1.0 / 120.0;
    sum = sum * r + 1.0 / 24.0;
    sum = sum * r + 1.0 / 6.0;
    sum = sum * r + 0.5;
    let value = 1.0 + (r + r * r * sum);
    let k = shifted.to_bits().wrapping_sub(ROUND.to_bits()).cast_signed();
    let half = k >> 1;
    let power = |k: i32| f32::from_bits((k + 127).cast_unsigned() << 23);
    value * power(half) * power(k - half)
}

/// base^exponent by repeated squaring, for a non-negative integer exponent.
#[must_use]
pub fn powi(base: f64, exponent: u32) -> f64 {
    let (mut result, mut square, mut rest) = (1.0, base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            result *= square;
        }
        square *= square;
        rest >>= 1;
    }
    result
}

/// The mass of a candidate whose logit lies `difference` <= 0 above the best:
/// round([`MASS_ONE`] * exp(`difference`)). Negative infinity has mass 0.
#[must_use]
#[inline]
pub fn mass(difference: f32) -> u64 {
    // This runs for every logit of every step, so it takes a shorter way than `exp`: with
    // s = r / 8, |s| <= 0.0434, a polynomial of degree 7 and three squarings. The relative error
    // stays below 3e-15: at most 0.03 units of the grid.
    let difference = bounded(difference);
    let shifted = difference * LOG2_E + ROUND_F64;
    let s = (difference - (shifted - ROUND_F64) * LN_2) * 0.125;
    let square = s * s;
    let high = (1.0 / 24.0 + s * (1.0 / 120.0)) + square * (1.0 / 720.0 + s * (1.0 / 5_040.0));
    let root = (1.0 + s) + square * ((0.5 + s * (1.0 / 6.0)) + square * high);
    let fourth = (root * root) * (root * root);
    let value = fourth * fourth;
    // value * 2^k * 2^43 is normal: 2^-46 * 2^43 at least. The exponent field is shifted by k
    // (low bits of the rounding sum) and by 43.
    let scaled = f64::from_bits(
        value.to_bits().wrapping_add(shifted.to_bits() << 52).wrapping_add(43 << 52),
    );
    (scaled + ROUND_UNSIGNED).to_bits() & LOW_52
}

/// The contribution of a candidate to the entropy, on the scale of [`mass`]:
/// round(`mass` * -`difference`), at most 0.37 * [`MASS_ONE`].
#[must_use]
#[inline]
pub fn surprisal_mass(difference: f32, mass: u64) -> u64 {
    // mass < 2^52, so or-ing it under the exponent of 2^52 converts it to f64 exactly.
    let weight = f64::from_bits(mass | ROUND_UNSIGNED.to_bits()) - ROUND_UNSIGNED;
    (weight * -bounded(difference) + ROUND_UNSIGNED).to_bits() & LOW_52
}

#[inline]
fn bounded(difference: f32) -> f64 {
    let difference = f64::from(difference);
    if difference > LOWEST { difference } else { LOWEST }
}

/// ln(`mass` / [`MASS_ONE`]): the logarithm of a sum of masses relative to the best candidate.
#[must_use]
pub fn ln_mass(mass: u64) -> f64 {
    ln(mass as f64 / MASS_ONE as f64)
}

/// Shannon entropy, in nats, of a distribution whose masses sum to `total` and whose
/// contributions ([`surprisal_mass`]) sum to `surprisal`.
#[must_use]
pub fn entropy(total: u64, surprisal: u64) -> f64 {
    ln_mass(total) + surprisal as f64 / total as f64
}

/// A key that orders as the numbers do: `a < b` exactly when `rank_key(a) < rank_key(b)`, and
/// equal numbers (0 and -0 too) have equal keys. Not for NaN.
#[must_use]
#[inline]
pub fn rank_key(value: f32) -> u32 {
    // Adding 0 turns -0 into 0.
    let bits = (value + 0.0).to_bits();
    let sign = (bits.cast_signed() >> 31).cast_unsigned();
    bits ^ (sign | 0x8000_0000)
}
