//! Row kernels in plain Rust, compiled once per instruction level.
//!
//! Each body is written over lanes that never mix except in a fixed tree, so the compiler may
//! use vectors of any width and the bits stay the same. There is no fused multiply-add: Rust
//! never contracts a product and a sum.
#![expect(
    unsafe_code,
    reason = "a function compiled for an instruction set may be called only where it was detected"
)]
#![expect(clippy::inline_always, reason = "bodies have to take on the caller's instructions")]

use super::isa::{Isa, Level};
use super::lanes::LANES;
use crate::sample::math::exp_f32;

/// Makes a safe function that runs `$body` compiled for the level of its first argument.
macro_rules! per_level {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:expr) => {
        $(#[$doc])*
        pub(super) fn $name(isa: Isa, $($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,f16c")]
            fn avx512($($arg: $ty),*) $(-> $ret)? {
                $body($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,f16c")]
            fn avx2($($arg: $ty),*) $(-> $ret)? {
                $body($($arg),*)
            }
            match isa.level() {
                Level::Portable => $body($($arg),*),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: a value of this level exists only where the features were detected.
                Level::Avx2 => unsafe { avx2($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                Level::Avx512 => unsafe { avx512($($arg),*) },
            }
        }
    };
}

#[inline(always)]
fn tree(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn rms_norm_row(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let mut squares = [0.0f32; LANES];
    let chunks = x.chunks_exact(LANES);
    for (lane, &v) in chunks.remainder().iter().enumerate() {
        squares[lane] += v * v;
    }
    for chunk in chunks {
        for lane in 0..LANES {
            squares[lane] += chunk[lane] * chunk[lane];
        }
    }
    let mean = tree(squares) / x.len() as f32;
    let scale = 1.0 / (mean + eps).sqrt();
    for ((o, &v), &w) in out.iter_mut().zip(x).zip(weight) {
        *o = (v * scale) * w;
    }
}

per_level! {
    /// Root-mean-square normalisation of one row, times a weight per element.
    fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) = rms_norm_row
}

#[inline(always)]
fn silu_mul_row(gate: &mut [f32], up: &[f32]) {
    for (g, &u) in gate.iter_mut().zip(up) {
        *g = *g / (1.0 + exp_f32(-*g)) * u;
    }
}

per_level! {
    /// `gate = silu(gate) * up`, element by element.
    fn silu_mul(gate: &mut [f32], up: &[f32]) = silu_mul_row
}

#[inline(always)]
fn softmax_row(scores: &mut [f32], scale: f32) {
    let mut top = [f32::NEG_INFINITY; LANES];
    for chunk in scores.chunks_mut(LANES) {
        for (t, s) in top.iter_mut().zip(chunk) {
            *s *= scale;
            // A NaN need not survive here: it does in its own exponential below.
            *t = if *t > *s { *t } else { *s };
        }
    }
    let top = top.into_iter().fold(f32::NEG_INFINITY, |a, b| if a > b { a } else { b });
    let mut sums = [0.0f32; LANES];
    for chunk in scores.chunks_mut(LANES) {
        for (sum, s) in sums.iter_mut().zip(chunk) {
            *s = exp_f32(*s - top);
            *sum += *s;
        }
    }
    let inverse = 1.0 / tree(sums);
    for s in scores.iter_mut() {
        *s *= inverse;
    }
}

per_level! {
    /// Softmax of `scale * scores`, in place; sums run by position modulo 16, then in a tree.
    fn softmax(scores: &mut [f32], scale: f32) = softmax_row
}
