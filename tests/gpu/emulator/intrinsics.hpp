// Bit operations, conversions and single-rounding arithmetic. Include through cuda_emulator.hpp.
//
// The `_rn` operations are plain operators: IEEE 754 rounds them once, provided that the compiler does not
// join two of them (-ffp-contract=off).
#pragma once

// ---------------------------------------------------------------------------- integers
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; bit++) reversed |= (x >> bit & 1) << (31 - bit);
  return reversed;
}
inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long low_reversed = __brev(static_cast<unsigned>(x));
  return low_reversed << 32 | __brev(static_cast<unsigned>(x >> 32));
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  uint64_t both = static_cast<uint64_t>(high) << 32 | low;
  return static_cast<unsigned>(both << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  uint64_t both = static_cast<uint64_t>(high) << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31));
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  uint64_t bytes = static_cast<uint64_t>(high) << 32 | low;
  unsigned result = 0;
  for (int i = 0; i < 4; i++) {
    unsigned pick = selector >> (4 * i);
    unsigned byte = bytes >> (8 * (pick & 7)) & 0xff;
    if (pick & 8) byte = byte & 0x80 ? 0xff : 0;       // the sign of the byte, spread over it
    result |= byte << (8 * i);
  }
  return result;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}

// ---------------------------------------------------------------------------- bits of floats
inline unsigned __float_as_uint(float x) { return emulator::from_word<unsigned>(emulator::to_word(x)); }
inline int __float_as_int(float x) { return emulator::from_word<int>(emulator::to_word(x)); }
inline float __uint_as_float(unsigned bits) { return emulator::from_word<float>(bits); }
inline float __int_as_float(int bits) { return emulator::from_word<float>(static_cast<unsigned>(bits)); }
inline long long __double_as_longlong(double x) { return static_cast<long long>(emulator::to_word(x)); }
inline double __longlong_as_double(long long bits) { return emulator::from_word<double>(static_cast<uint64_t>(bits)); }
inline double __longlong_as_double(unsigned long long bits) { return emulator::from_word<double>(bits); }
inline double __longlong_as_double(unsigned long bits) { return emulator::from_word<double>(bits); }

// ---------------------------------------------------------------------------- one rounding each
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }

// ---------------------------------------------------------------------------- conversions
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
// Towards negative infinity.
inline float __double2float_rd(double x) {
  const float nearest = static_cast<float>(x);
  return static_cast<double>(nearest) > x ? std::nextafter(nearest, -std::numeric_limits<float>::infinity()) : nearest;
}
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }
inline double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }

namespace emulator {
// Towards zero, clamped to the range of the integer, NaN to 0 or to the largest negative 64-bit number, as
// the GPU converts. In C++ a value out of range has no meaning.
template <class Integer, class Float>
inline Integer clamp_to(Float x, Integer of_nan) {
  if (x != x) return of_nan;
  constexpr Integer low = std::numeric_limits<Integer>::min(), high = std::numeric_limits<Integer>::max();
  if (x <= static_cast<Float>(low)) return low;
  if (x >= static_cast<Float>(high)) return high;
  return static_cast<Integer>(x);
}
constexpr unsigned long long nan_as_u64 = 1ull << 63;
}  // namespace emulator

inline int __float2int_rz(float x) { return emulator::clamp_to<int>(x, 0); }
inline int __float2int_rn(float x) { return emulator::clamp_to<int>(std::nearbyint(x), 0); }
inline int __float2int_rd(float x) { return emulator::clamp_to<int>(std::floor(x), 0); }
inline unsigned __float2uint_rz(float x) { return emulator::clamp_to<unsigned>(x, 0u); }
inline unsigned __float2uint_rn(float x) { return emulator::clamp_to<unsigned>(std::nearbyint(x), 0u); }
inline int __double2int_rz(double x) { return emulator::clamp_to<int>(x, 0); }
inline int __double2int_rn(double x) { return emulator::clamp_to<int>(std::nearbyint(x), 0); }
inline unsigned long long __float2ull_rz(float x) {
  return emulator::clamp_to<unsigned long long>(x, emulator::nan_as_u64);
}
inline unsigned long long __double2ull_rz(double x) {
  return emulator::clamp_to<unsigned long long>(x, emulator::nan_as_u64);
}
inline unsigned long long __double2ull_rn(double x) {
  return emulator::clamp_to<unsigned long long>(std::nearbyint(x), emulator::nan_as_u64);
}
inline long long __double2ll_rz(double x) {
  return emulator::clamp_to<long long>(x, std::numeric_limits<long long>::min());
}
inline long long __double2ll_rn(double x) {
  return emulator::clamp_to<long long>(std::nearbyint(x), std::numeric_limits<long long>::min());
}

// ---------------------------------------------------------------------------- memory hints
template <class T>
inline T __ldg(const T *place) { return *place; }
template <class T>
inline T __ldcs(const T *place) { return *place; }
template <class T>
inline T __ldcg(const T *place) { return *place; }
template <class T>
inline void __stcs(T *place, T value) { *place = value; }
template <class T>
inline void __stcg(T *place, T value) { *place = value; }

[[noreturn]] inline void __trap() { emulator::fail("the kernel called __trap()"); }
