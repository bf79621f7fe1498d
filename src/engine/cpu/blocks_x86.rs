//! The block products of [`super::blocks`] with AVX2 and AVX-512 VNNI.
//!
//! The integer dot products are exact and the floating-point steps are those of the portable
//! definition, lane for lane, so the bits are the same.
#![expect(
    unsafe_code,
    reason = "a function compiled for an instruction set may be called only where it was \
              detected, and vector loads take raw pointers"
)]
#![expect(
    clippy::needless_range_loop,
    clippy::inline_always,
    reason = "loops of a constant length over several arrays become straight code, in the \
              caller's instructions"
)]

use std::arch::x86_64::{
    __m256, __m256i, __m512, __m512i, _mm_loadu_si128, _mm256_abs_epi8, _mm256_add_epi32,
    _mm256_add_ps, _mm256_and_si256, _mm256_cvtepi32_ps, _mm256_cvtph_ps, _mm256_load_si256,
    _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_mul_ps, _mm256_set1_epi8,
    _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_ps, _mm256_setzero_si256,
    _mm256_sign_epi8, _mm256_slli_epi32, _mm256_srli_epi16, _mm256_storeu_ps, _mm256_sub_epi32,
    _mm256_xor_si256, _mm512_add_epi32, _mm512_add_ps, _mm512_and_si512, _mm512_cvtepi32_ps,
    _mm512_cvtph_ps, _mm512_dpbusd_epi32, _mm512_load_si512, _mm512_mul_ps, _mm512_set1_epi8,
    _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps, _mm512_setzero_si512, _mm512_slli_epi32,
    _mm512_srli_epi16, _mm512_storeu_ps, _mm512_sub_epi32,
};

use super::blocks::{BlockKind, Group, Line};
use super::isa::{Isa, Level};
use super::lanes::LANES;
use super::quantised::{BASE, Block};

const Q4_0: u8 = 0;
const Q4_1: u8 = 1;
const Q8_0: u8 = 2;

/// Four bytes as the instructions take them.
#[inline(always)]
fn four(bytes: [i8; 4]) -> i32 {
    i32::from_le_bytes(bytes.map(i8::cast_unsigned))
}

/// The products of one group with every row of `xs` (`out.len()` rows).
pub(super) fn multiply(
    isa: Isa,
    kind: BlockKind,
    group: Group<'_>,
    xs: &[Block],
    out: &mut [[f32; LANES]],
) {
    let per_row = group.scales.len();
    let row = |r: usize| &xs[r * per_row..][..per_row];
    let rows = out.len();
    let mut r = 0;
    while r < rows {
        // The number of rows that share a load never changes what is computed for one.
        if rows - r >= 4 {
            let xs = [row(r), row(r + 1), row(r + 2), row(r + 3)];
            dispatch(isa, kind, group, xs, &mut out[r..]);
            r += 4;
        } else if rows - r >= 2 {
            dispatch(isa, kind, group, [row(r), row(r + 1)], &mut out[r..]);
            r += 2;
        } else {
            dispatch(isa, kind, group, [row(r)], &mut out[r..]);
            r += 1;
        }
    }
}

fn dispatch<const R: usize>(
    isa: Isa,
    kind: BlockKind,
    group: Group<'_>,
    xs: [&[Block]; R],
    out: &mut [[f32; LANES]],
) {
    let mut sums = [[0.0; LANES]; R];
    // SAFETY: an `Isa` of a level exists only where its features were detected.
    unsafe {
        match (isa.level(), kind) {
            (Level::Avx512, BlockKind::Q4_0) => avx512::<Q4_0, R>(group, xs, &mut sums),
            (Level::Avx512, BlockKind::Q4_1) => avx512::<Q4_1, R>(group, xs, &mut sums),
            (Level::Avx512, BlockKind::Q8_0) => avx512::<Q8_0, R>(group, xs, &mut sums),
            (Level::Avx2, BlockKind::Q4_0) => avx2::<Q4_0, R>(group, xs, &mut sums),
            (Level::Avx2, BlockKind::Q4_1) => avx2::<Q4_1, R>(group, xs, &mut sums),
            (Level::Avx2, BlockKind::Q8_0) => avx2::<Q8_0, R>(group, xs, &mut sums),
            (Level::Portable, _) => {}
        }
    }
    out[..R].copy_from_slice(&sums);
}

const fn lines_of(kind: u8) -> usize {
    if kind == Q8_0 { 8 } else { 4 }
}

const fn offset_of(kind: u8) -> i32 {
    match kind {
        Q4_0 => BlockKind::Q4_0.offset(),
        Q4_1 => BlockKind::Q4_1.offset(),
        _ => BlockKind::Q8_0.offset(),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,f16c")]
fn widen512(halves: &[u16; LANES]) -> __m512 {
    // SAFETY: 32 readable bytes; the load has no alignment.
    _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(halves.as_ptr().cast()) })
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,f16c")]
fn load512(line: &Line) -> __m512i {
    // SAFETY: a `Line` is 64 bytes aligned to 64.
    unsafe { _mm512_load_si512(line.0.as_ptr().cast()) }
}

/// 255 times each lane: 256 times less once.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,f16c")]
fn times_base512(lanes: __m512i) -> __m512i {
    const { assert!(BASE == 255) };
    _mm512_sub_epi32(_mm512_slli_epi32::<8>(lanes), lanes)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,f16c")]
fn avx512<const KIND: u8, const R: usize>(
    group: Group<'_>,
    xs: [&[Block]; R],
    out: &mut [[f32; LANES]; R],
) {
    let mut sums = [_mm512_setzero_ps(); R];
    let mut lows = [_mm512_setzero_ps(); R];
    let nibble = _mm512_set1_epi8(15);
    let blocks = group.lines.chunks_exact(lines_of(KIND)).zip(group.scales);
    for (b, (lines, scales)) in blocks.enumerate() {
        let mut weights = [_mm512_setzero_si512(); 8];
        if KIND == Q8_0 {
            for i in 0..8 {
                weights[i] = load512(&lines[i]);
            }
        } else {
            for i in 0..4 {
                let line = load512(&lines[i]);
                weights[i] = _mm512_and_si512(line, nibble);
                weights[i + 4] = _mm512_and_si512(_mm512_srli_epi16::<4>(line), nibble);
            }
        }
        let scale = widen512(scales);
        for r in 0..R {
            let x = &xs[r][b];
            // One chain of sums for each kind of byte; blocks overlap in the pipeline.
            let mut high = _mm512_setzero_si512();
            let mut low = _mm512_setzero_si512();
            for i in 0..8 {
                high = _mm512_dpbusd_epi32(high, weights[i], _mm512_set1_epi32(four(x.high[i])));
                low = _mm512_dpbusd_epi32(low, weights[i], _mm512_set1_epi32(four(x.low[i])));
            }
            let mut dot = _mm512_add_epi32(times_base512(high), low);
            if offset_of(KIND) != 0 {
                dot = _mm512_sub_epi32(dot, _mm512_set1_epi32(offset_of(KIND) * x.sum));
            }
            let scale = _mm512_mul_ps(scale, _mm512_set1_ps(x.scale));
            sums[r] = _mm512_add_ps(sums[r], _mm512_mul_ps(scale, _mm512_cvtepi32_ps(dot)));
            if KIND == Q4_1 {
                let low = _mm512_mul_ps(widen512(&group.minima[b]), _mm512_set1_ps(x.total));
                lows[r] = _mm512_add_ps(lows[r], low);
            }
        }
    }
    for r in 0..R {
        // SAFETY: 16 writable f32; the store has no alignment.
        unsafe { _mm512_storeu_ps(out[r].as_mut_ptr(), _mm512_add_ps(sums[r], lows[r])) };
    }
}

#[target_feature(enable = "avx2,f16c")]
fn widen256(halves: &[u16; LANES], half: usize) -> __m256 {
    // SAFETY: `half` is 0 or 1, so 16 bytes are readable; the load has no alignment.
    _mm256_cvtph_ps(unsafe { _mm_loadu_si128(halves.as_ptr().cast::<u16>().add(half * 8).cast()) })
}

#[target_feature(enable = "avx2,f16c")]
fn load256(line: &Line, half: usize) -> __m256i {
    // SAFETY: a `Line` is 64 bytes aligned to 64 and `half` is 0 or 1.
    unsafe { _mm256_load_si256(std::ptr::from_ref(line).cast::<__m256i>().add(half)) }
}

/// Four products per 32-bit lane, summed exactly.
#[target_feature(enable = "avx2,f16c")]
fn dot256<const KIND: u8>(sum: __m256i, weights: __m256i, x: __m256i) -> __m256i {
    let pairs = if KIND == Q8_0 {
        // Pairs of 255 * 127 would saturate 16 bits, so the sign moves to the activations:
        // 2 * 128 * 127 fits.
        let signed = _mm256_xor_si256(weights, _mm256_set1_epi8(-128));
        _mm256_maddubs_epi16(_mm256_abs_epi8(signed), _mm256_sign_epi8(x, signed))
    } else {
        _mm256_maddubs_epi16(weights, x)
    };
    _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
}

#[target_feature(enable = "avx2,f16c")]
fn avx2<const KIND: u8, const R: usize>(
    group: Group<'_>,
    xs: [&[Block]; R],
    out: &mut [[f32; LANES]; R],
) {
    let nibble = _mm256_set1_epi8(15);
    // Two halves of eight columns.
    for half in 0..2 {
        let mut sums = [_mm256_setzero_ps(); R];
        let mut lows = [_mm256_setzero_ps(); R];
        let blocks = group.lines.chunks_exact(lines_of(KIND)).zip(group.scales);
        for (b, (lines, scales)) in blocks.enumerate() {
            let mut weights = [_mm256_setzero_si256(); 8];
            if KIND == Q8_0 {
                for i in 0..8 {
                    weights[i] = load256(&lines[i], half);
                }
            } else {
                for i in 0..4 {
                    let line = load256(&lines[i], half);
                    weights[i] = _mm256_and_si256(line, nibble);
                    weights[i + 4] = _mm256_and_si256(_mm256_srli_epi16::<4>(line), nibble);
                }
            }
            let scale = widen256(scales, half);
            for r in 0..R {
                let x = &xs[r][b];
                let mut high = _mm256_setzero_si256();
                let mut low = _mm256_setzero_si256();
                for i in 0..8 {
                    high = dot256::<KIND>(high, weights[i], _mm256_set1_epi32(four(x.high[i])));
                    low = dot256::<KIND>(low, weights[i], _mm256_set1_epi32(four(x.low[i])));
                }
                let high = _mm256_sub_epi32(_mm256_slli_epi32::<8>(high), high);
                let mut dot = _mm256_add_epi32(high, low);
                // The 8-bit products above are already signed.
                if KIND == Q4_0 {
                    dot = _mm256_sub_epi32(dot, _mm256_set1_epi32(offset_of(KIND) * x.sum));
                }
                let scale = _mm256_mul_ps(scale, _mm256_set1_ps(x.scale));
                sums[r] = _mm256_add_ps(sums[r], _mm256_mul_ps(scale, _mm256_cvtepi32_ps(dot)));
                if KIND == Q4_1 {
                    let low =
                        _mm256_mul_ps(widen256(&group.minima[b], half), _mm256_set1_ps(x.total));
                    lows[r] = _mm256_add_ps(lows[r], low);
                }
            }
        }
        for r in 0..R {
            let sum = _mm256_add_ps(sums[r], lows[r]);
            // SAFETY: `half` is 0 or 1, so eight f32 are writable; the store has no alignment.
            unsafe { _mm256_storeu_ps(out[r].as_mut_ptr().add(half * 8), sum) };
        }
    }
}
