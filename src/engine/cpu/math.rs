//! The exponential of the engine's softmax and gate: a fixed polynomial, so that no logit
//! depends on a platform's libm. It is for network activations only; the sampling chain has
//! its own arithmetic.

/// e^x for |x| below 87, to within 2 units in the last place; clamped to e^-87 and e^88 outside.
/// NaN gives NaN. Written without branches so that a loop over it becomes vector code.
#[inline(always)]
#[expect(
    clippy::excessive_precision,
    reason = "the high part of ln 2 has few bits on purpose, and both parts are written out"
)]
pub(super) fn exp(x: f32) -> f32 {
    /// 1.5 * 2^23: adding it rounds to the nearest integer, ties to even.
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_375;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    // Taylor coefficients: on |r| <= ln(2)/2 the first one left out adds less than 6e-9.
    let mut p = 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    // The low bits of `shifted` are n; moved into the exponent they are 2^n.
    let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0_f32.to_bits()));
    p * scale
}
