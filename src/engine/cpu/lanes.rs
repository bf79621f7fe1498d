//! Sixteen f32 lanes in vector registers, and the two products that are made of them.
//!
//! Each lane's sum is its own and runs in ascending order with a separate multiplication and
//! addition, so every implementation of [`Lanes`] gives the same bits.
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

use super::isa::{Isa, Level};

/// Number of lanes.
pub(super) const LANES: usize = 16;

/// Sixteen f32.
///
/// Every method is unsafe: it may run only where the implementation's instructions exist, and
/// pointers must be good for 16 elements.
trait Lanes: Copy {
    unsafe fn zero() -> Self;
    unsafe fn splat(x: f32) -> Self;
    unsafe fn load_f32(from: *const f32) -> Self;
    unsafe fn load_bf16(from: *const u16) -> Self;
    unsafe fn load_f16(from: *const u16) -> Self;
    unsafe fn store(self, to: *mut f32);
    /// `self + a * b`, rounded twice.
    unsafe fn add_product(self, a: Self, b: Self) -> Self;
}

/// A type of stored numbers that widens to f32 exactly.
trait Format {
    type Bits;
    /// # Safety
    /// As [`Lanes`].
    unsafe fn load<V: Lanes>(from: *const Self::Bits) -> V;
}

struct F32;
struct Bf16;
struct F16;

impl Format for F32 {
    type Bits = f32;
    #[inline(always)]
    unsafe fn load<V: Lanes>(from: *const f32) -> V {
        // SAFETY: the caller's promise is the same.
        unsafe { V::load_f32(from) }
    }
}

impl Format for Bf16 {
    type Bits = u16;
    #[inline(always)]
    unsafe fn load<V: Lanes>(from: *const u16) -> V {
        // SAFETY: the caller's promise is the same.
        unsafe { V::load_bf16(from) }
    }
}

impl Format for F16 {
    type Bits = u16;
    #[inline(always)]
    unsafe fn load<V: Lanes>(from: *const u16) -> V {
        // SAFETY: the caller's promise is the same.
        unsafe { V::load_f16(from) }
    }
}

/// Lanes without vector instructions.
#[derive(Clone, Copy)]
struct Portable([f32; LANES]);

// SAFETY of every block below: the caller promises 16 readable or writable elements.
impl Lanes for Portable {
    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0.0; LANES])
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Self([x; LANES])
    }
    #[inline(always)]
    unsafe fn load_f32(from: *const f32) -> Self {
        // SAFETY: see above.
        Self(unsafe { from.cast::<[f32; LANES]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        // SAFETY: see above.
        let bits = unsafe { from.cast::<[u16; LANES]>().read_unaligned() };
        Self(bits.map(|b| half::bf16::from_bits(b).to_f32()))
    }
    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        // SAFETY: see above.
        let bits = unsafe { from.cast::<[u16; LANES]>().read_unaligned() };
        Self(bits.map(|b| half::f16::from_bits(b).to_f32()))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: see above.
        unsafe { to.cast::<[f32; LANES]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn add_product(mut self, a: Self, b: Self) -> Self {
        for ((sum, a), b) in self.0.iter_mut().zip(a.0).zip(b.0) {
            *sum += a * b;
        }
        self
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256, __m512, _mm_loadu_si128, _mm256_add_ps, _mm256_castsi256_ps, _mm256_cvtepu16_epi32,
        _mm256_cvtph_ps, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_mul_ps, _mm256_set1_ps,
        _mm256_setzero_ps, _mm256_slli_epi32, _mm256_storeu_ps, _mm512_add_ps, _mm512_castsi512_ps,
        _mm512_cvtepu16_epi32, _mm512_cvtph_ps, _mm512_loadu_ps, _mm512_mul_ps, _mm512_set1_ps,
        _mm512_setzero_ps, _mm512_slli_epi32, _mm512_storeu_ps,
    };

    use super::Lanes;

    // SAFETY of every block below: the caller promises that the instructions exist and that 16
    // elements are readable or writable; no access has an alignment.
    impl Lanes for __m512 {
        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: see above.
            unsafe { _mm512_setzero_ps() }
        }
        #[inline(always)]
        unsafe fn splat(x: f32) -> Self {
            // SAFETY: see above.
            unsafe { _mm512_set1_ps(x) }
        }
        #[inline(always)]
        unsafe fn load_f32(from: *const f32) -> Self {
            // SAFETY: see above.
            unsafe { _mm512_loadu_ps(from) }
        }
        #[inline(always)]
        unsafe fn load_bf16(from: *const u16) -> Self {
            // SAFETY: see above.
            unsafe {
                let bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
                _mm512_castsi512_ps(_mm512_slli_epi32::<16>(bits))
            }
        }
        #[inline(always)]
        unsafe fn load_f16(from: *const u16) -> Self {
            // SAFETY: see above.
            unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: see above.
            unsafe { _mm512_storeu_ps(to, self) }
        }
        #[inline(always)]
        unsafe fn add_product(self, a: Self, b: Self) -> Self {
            // SAFETY: see above.
            unsafe { _mm512_add_ps(self, _mm512_mul_ps(a, b)) }
        }
    }

    /// Two registers of eight lanes.
    #[derive(Clone, Copy)]
    pub(super) struct Pair(__m256, __m256);

    impl Lanes for Pair {
        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: see above.
            unsafe { Self(_mm256_setzero_ps(), _mm256_setzero_ps()) }
        }
        #[inline(always)]
        unsafe fn splat(x: f32) -> Self {
            // SAFETY: see above.
            unsafe { Self(_mm256_set1_ps(x), _mm256_set1_ps(x)) }
        }
        #[inline(always)]
        unsafe fn load_f32(from: *const f32) -> Self {
            // SAFETY: see above.
            unsafe { Self(_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))) }
        }
        #[inline(always)]
        unsafe fn load_bf16(from: *const u16) -> Self {
            // SAFETY: see above.
            unsafe {
                let half = |from: *const u16| {
                    let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
                    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits))
                };
                Self(half(from), half(from.add(8)))
            }
        }
        #[inline(always)]
        unsafe fn load_f16(from: *const u16) -> Self {
            // SAFETY: see above.
            unsafe {
                Self(
                    _mm256_cvtph_ps(_mm_loadu_si128(from.cast())),
                    _mm256_cvtph_ps(_mm_loadu_si128(from.add(8).cast())),
                )
            }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: see above.
            unsafe {
                _mm256_storeu_ps(to, self.0);
                _mm256_storeu_ps(to.add(8), self.1);
            }
        }
        #[inline(always)]
        unsafe fn add_product(self, a: Self, b: Self) -> Self {
            // SAFETY: see above.
            unsafe {
                Self(
                    _mm256_add_ps(self.0, _mm256_mul_ps(a.0, b.0)),
                    _mm256_add_ps(self.1, _mm256_mul_ps(a.1, b.1)),
                )
            }
        }
    }
}

/// # Safety
/// The instructions of `V` exist; `weights` is good for 16 `inputs` elements, each of `xs` for
/// `inputs`, and `out` has at least `R` elements.
#[inline(always)]
unsafe fn tile<V: Lanes, F: Format, const R: usize>(
    weights: *const F::Bits,
    inputs: usize,
    xs: [*const f32; R],
    out: &mut [[f32; LANES]],
) {
    // SAFETY: all indices are below the lengths that the caller promises.
    unsafe {
        let mut sums = [V::zero(); R];
        for i in 0..inputs {
            let column: V = F::load(weights.add(i * LANES));
            for r in 0..R {
                sums[r] = sums[r].add_product(column, V::splat(*xs[r].add(i)));
            }
        }
        for (sum, out) in sums.into_iter().zip(out) {
            sum.store(out.as_mut_ptr());
        }
    }
}

/// # Safety
/// The instructions of `V` exist. Lengths are checked here.
#[inline(always)]
unsafe fn group<V: Lanes, F: Format>(
    weights: &[F::Bits],
    inputs: usize,
    xs: &[f32],
    out: &mut [[f32; LANES]],
) {
    let rows = out.len();
    assert!(weights.len() == inputs * LANES && xs.len() >= rows * inputs);
    let weights = weights.as_ptr();
    let mut r = 0;
    while r < rows {
        // SAFETY: the lengths were checked above; `r` and the rows after it are below `rows`.
        unsafe {
            let row = |i: usize| xs.as_ptr().add((r + i) * inputs);
            let out = &mut out[r..];
            // How many rows share a load changes no row's sum.
            match rows - r {
                1 => tile::<V, F, 1>(weights, inputs, [row(0)], out),
                2 => tile::<V, F, 2>(weights, inputs, [row(0), row(1)], out),
                3 => tile::<V, F, 3>(weights, inputs, [row(0), row(1), row(2)], out),
                _ => tile::<V, F, 4>(weights, inputs, [row(0), row(1), row(2), row(3)], out),
            }
        }
        r += 4;
    }
}

/// # Safety
/// The instructions of `V` exist; every pointer of `weights` is good for `count` elements,
/// `values` for `count` rows `width` apart from which `N` times 16 are read, and `out` for as
/// many.
#[inline(always)]
unsafe fn mix_tile<V: Lanes, F: Format, const Q: usize, const N: usize>(
    weights: [*const f32; Q],
    values: *const F::Bits,
    (count, width): (usize, usize),
    out: [*mut f32; Q],
) {
    // SAFETY: all indices are below the lengths that the caller promises.
    unsafe {
        let mut sums = [[V::zero(); N]; Q];
        for q in 0..Q {
            for n in 0..N {
                sums[q][n] = V::load_f32(out[q].add(n * LANES));
            }
        }
        for i in 0..count {
            let mut value = [V::zero(); N];
            for n in 0..N {
                value[n] = F::load(values.add(i * width + n * LANES));
            }
            for q in 0..Q {
                let weight = V::splat(*weights[q].add(i));
                for n in 0..N {
                    sums[q][n] = sums[q][n].add_product(value[n], weight);
                }
            }
        }
        for q in 0..Q {
            for n in 0..N {
                sums[q][n].store(out[q].add(n * LANES));
            }
        }
    }
}

/// # Safety
/// The instructions of `V` exist. Lengths are checked here.
#[inline(always)]
unsafe fn mix<V: Lanes, F: Format, const Q: usize>(
    weights: [&[f32]; Q],
    values: &[F::Bits],
    width: usize,
    out: [&mut [f32]; Q],
    widen: impl Fn(&F::Bits) -> f32,
) {
    let count = weights[0].len();
    assert!(
        weights.iter().all(|w| w.len() == count)
            && values.len() >= count * width
            && out.iter().all(|o| o.len() == width)
    );
    let mut offset = 0;
    let mut out = out;
    // SAFETY: the lengths were checked above and `offset` leaves room for what is read.
    unsafe {
        let pointers = weights.map(<[f32]>::as_ptr);
        while offset + 2 * LANES <= width {
            let out = out.each_mut().map(|o| o.as_mut_ptr().add(offset));
            let values = values.as_ptr().add(offset);
            mix_tile::<V, F, Q, 2>(pointers, values, (count, width), out);
            offset += 2 * LANES;
        }
        if offset + LANES <= width {
            let out = out.each_mut().map(|o| o.as_mut_ptr().add(offset));
            let values = values.as_ptr().add(offset);
            mix_tile::<V, F, Q, 1>(pointers, values, (count, width), out);
            offset += LANES;
        }
    }
    if offset < width {
        for (weights, out) in weights.into_iter().zip(out) {
            for (value, weight) in values.chunks_exact(width).zip(weights) {
                for (o, v) in out[offset..].iter_mut().zip(&value[offset..]) {
                    *o += weight * widen(v);
                }
            }
        }
    }
}

/// Makes a safe function that runs `$generic` on the lanes of the level of its first argument.
macro_rules! on_lanes {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) =
        $generic:ident<$format:ty $(, $q:literal)?>($($value:expr),*)) => {
        $(#[$doc])*
        pub(super) fn $name(isa: Isa, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,f16c")]
            fn avx512($($arg: $ty),*) {
                // SAFETY: this function has the features.
                unsafe { $generic::<std::arch::x86_64::__m512, $format $(, $q)?>($($value),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,f16c")]
            fn avx2($($arg: $ty),*) {
                // SAFETY: this function has the features.
                unsafe { $generic::<x86::Pair, $format $(, $q)?>($($value),*) }
            }
            // SAFETY: a value of a level exists only where its features were detected; the
            // portable lanes need none.
            unsafe {
                match isa.level() {
                    Level::Portable => $generic::<Portable, $format $(, $q)?>($($value),*),
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx2 => avx2($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx512 => avx512($($arg),*),
                }
            }
        }
    };
}

on_lanes! {
    /// `out[row][lane] = sum over i of weights[i * 16 + lane] * xs[row * inputs + i]`.
    fn group_f32(weights: &[f32], inputs: usize, xs: &[f32], out: &mut [[f32; LANES]])
    = group<F32>(weights, inputs, xs, out)
}

on_lanes! {
    /// The same over bf16.
    fn group_bf16(weights: &[u16], inputs: usize, xs: &[f32], out: &mut [[f32; LANES]])
    = group<Bf16>(weights, inputs, xs, out)
}

on_lanes! {
    /// The same over f16.
    fn group_f16(weights: &[u16], inputs: usize, xs: &[f32], out: &mut [[f32; LANES]])
    = group<F16>(weights, inputs, xs, out)
}

on_lanes! {
    /// `out[q][d] += weights[q][i] * values[i * width + d]`, i ascending.
    fn mix1_f32(weights: [&[f32]; 1], values: &[f32], width: usize, out: [&mut [f32]; 1])
    = mix<F32, 1>(weights, values, width, out, |v| *v)
}

on_lanes! {
    /// The same for three queries, reading every value once.
    fn mix3_f32(weights: [&[f32]; 3], values: &[f32], width: usize, out: [&mut [f32]; 3])
    = mix<F32, 3>(weights, values, width, out, |v| *v)
}

on_lanes! {
    /// [`mix1_f32`] over f16.
    fn mix1_f16(weights: [&[f32]; 1], values: &[u16], width: usize, out: [&mut [f32]; 1])
    = mix<F16, 1>(weights, values, width, out, |v| half::f16::from_bits(*v).to_f32())
}

on_lanes! {
    /// [`mix3_f32`] over f16.
    fn mix3_f16(weights: [&[f32]; 3], values: &[u16], width: usize, out: [&mut [f32]; 3])
    = mix<F16, 3>(weights, values, width, out, |v| half::f16::from_bits(*v).to_f32())
}
