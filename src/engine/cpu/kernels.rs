//! Row kernels in plain Rust, compiled once per instruction level.
//!
//! Each body is written over lanes that never mix except in a fixed tree, so the compiler may
//! use vectors of any width and the bits stay the same. There is no fused multiply-add: Rust
//! never contracts a product and a sum.
#![expect(
    unsafe_code,
    reason = "a function compiled for an instruction set may be called only where it was detected"
)]

use super::isa::{Isa, Level};
use super::math::exp;

/// Columns, positions or elements that one vector step handles.
pub(super) const LANES: usize = 16;

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

/// A stored weight that widens to f32 without rounding.
pub(super) trait Element: Copy + Send + Sync + 'static {
    /// The value.
    fn widen(self) -> f32;
}

impl Element for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
}

/// The upper half of an f32.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bf16(pub(super) u16);

impl Element for Bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
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

/// `R` rows times 16 interleaved columns; each sum runs over k in ascending order.
#[inline(always)]
fn tile<E: Element, const R: usize>(
    weights: &[[E; LANES]],
    xs: [&[f32]; R],
    out: &mut [[f32; LANES]],
) {
    let mut sums = [[0.0f32; LANES]; R];
    let k = weights.len();
    let xs = xs.map(|x| &x[..k]);
    for (i, column) in weights.iter().enumerate() {
        for r in 0..R {
            let x = xs[r][i];
            for lane in 0..LANES {
                sums[r][lane] += column[lane].widen() * x;
            }
        }
    }
    out[..R].copy_from_slice(&sums);
}

/// Any number of rows (`xs.len() / stride`, each of `weights.len()` elements) by one group.
#[inline(always)]
fn group<E: Element>(weights: &[[E; LANES]], xs: &[f32], stride: usize, out: &mut [[f32; LANES]]) {
    let row = |r: usize| &xs[r * stride..][..weights.len()];
    let rows = out.len();
    let mut r = 0;
    while r + 4 <= rows {
        tile::<E, 4>(weights, [row(r), row(r + 1), row(r + 2), row(r + 3)], &mut out[r..]);
        r += 4;
    }
    while r < rows {
        tile::<E, 1>(weights, [row(r)], &mut out[r..]);
        r += 1;
    }
}

per_level! {
    /// `out[row][lane] = sum over i of weights[i][lane] * xs[row * stride + i]`.
    fn group_f32(weights: &[[f32; LANES]], xs: &[f32], stride: usize, out: &mut [[f32; LANES]])
    = group::<f32>
}

per_level! {
    /// The same over bf16 weights.
    fn group_bf16(weights: &[[Bf16; LANES]], xs: &[f32], stride: usize, out: &mut [[f32; LANES]])
    = group::<Bf16>
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
        *g = *g / (1.0 + exp(-*g)) * u;
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
            *s = exp(*s - top);
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

/// `out[q][d] += weights[q][i] * values[i][d]`, i ascending, for `Q` queries and 64 elements.
#[inline(always)]
fn mix_tile<const Q: usize, const D: usize>(
    weights: [&[f32]; Q],
    values: &[f32],
    width: usize,
    offset: usize,
    out: [&mut [f32]; Q],
) {
    let mut sums = [[0.0f32; D]; Q];
    for q in 0..Q {
        sums[q].copy_from_slice(&out[q][offset..offset + D]);
    }
    let count = weights[0].len();
    let weights = weights.map(|w| &w[..count]);
    for (i, value) in values.chunks_exact(width).take(count).enumerate() {
        let value = &value[offset..offset + D];
        for q in 0..Q {
            let w = weights[q][i];
            for d in 0..D {
                sums[q][d] += w * value[d];
            }
        }
    }
    for (o, sum) in out.into_iter().zip(&sums) {
        o[offset..offset + D].copy_from_slice(sum);
    }
}

#[inline(always)]
fn mix_one(weights: &[f32], values: &[f32], width: usize, out: &mut [f32]) {
    let mut offset = 0;
    while offset + 64 <= width {
        mix_tile::<1, 64>([weights], values, width, offset, [out]);
        offset += 64;
    }
    while offset + LANES <= width {
        mix_tile::<1, LANES>([weights], values, width, offset, [out]);
        offset += LANES;
    }
    for (i, value) in values.chunks_exact(width).take(weights.len()).enumerate() {
        for d in offset..width {
            out[d] += weights[i] * value[d];
        }
    }
}

per_level! {
    /// `out[d] += weights[i] * values[i * width + d]`, i ascending.
    fn mix(weights: &[f32], values: &[f32], width: usize, out: &mut [f32]) = mix_one
}

#[inline(always)]
fn mix_three(weights: [&[f32]; 3], values: &[f32], width: usize, out: [&mut [f32]; 3]) {
    let [a, b, c] = out;
    let mut offset = 0;
    while offset + 64 <= width {
        mix_tile::<3, 64>(weights, values, width, offset, [a, b, c]);
        offset += 64;
    }
    while offset + LANES <= width {
        mix_tile::<3, LANES>(weights, values, width, offset, [a, b, c]);
        offset += LANES;
    }
    for (q, out) in [a, b, c].into_iter().enumerate() {
        for (i, value) in values.chunks_exact(width).take(weights[q].len()).enumerate() {
            for d in offset..width {
                out[d] += weights[q][i] * value[d];
            }
        }
    }
}

per_level! {
    /// [`mix`] for three queries with as many weights each, reading every value once.
    fn mix3(weights: [&[f32]; 3], values: &[f32], width: usize, out: [&mut [f32]; 3]) = mix_three
}
