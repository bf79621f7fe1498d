// The number types of CUDA's headers, as far as candle's kernels use them, for the mock driver.
//
// Half precision arithmetic widens to f32 and rounds once, as the GPU's instructions do. 8-bit floats exist
// as names only: whoever computes with them ends the process.
#pragma once

#include <cassert>
#include <cmath>
#include <limits>

#include "cuda_emulator.hpp"

using std::isinf;
using std::isnan;
using std::signbit;

struct __half_raw {
  unsigned short x;
};

struct __half {
  _Float16 value;

  __half() = default;
  __half(__half_raw raw) { memcpy(&value, &raw, sizeof value); }
  __half(_Float16 x) : value(x) {}
  __half(float x) : value(static_cast<_Float16>(x)) {}
  __half(double x) : value(static_cast<_Float16>(x)) {}
  __half(int x) : value(static_cast<_Float16>(x)) {}
  __half(unsigned x) : value(static_cast<_Float16>(x)) {}
  __half(long x) : value(static_cast<_Float16>(x)) {}
  __half(unsigned long x) : value(static_cast<_Float16>(x)) {}
  __half(unsigned char x) : value(static_cast<_Float16>(static_cast<float>(x))) {}
  operator float() const { return static_cast<float>(value); }
};

struct __nv_bfloat16 {
  uint16_t bits;

  __nv_bfloat16() = default;
  __nv_bfloat16(float x) : bits(rounded(x)) {}
  __nv_bfloat16(double x) : bits(rounded(static_cast<float>(x))) {}
  __nv_bfloat16(int x) : bits(rounded(static_cast<float>(x))) {}
  __nv_bfloat16(unsigned x) : bits(rounded(static_cast<float>(x))) {}
  __nv_bfloat16(long x) : bits(rounded(static_cast<float>(x))) {}
  __nv_bfloat16(unsigned long x) : bits(rounded(static_cast<float>(x))) {}
  __nv_bfloat16(unsigned char x) : bits(rounded(static_cast<float>(x))) {}
  operator float() const { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

  // To the nearest, ties to even; NaN stays NaN.
  static uint16_t rounded(float x) {
    const unsigned word = __float_as_uint(x);
    if ((word & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(word >> 16 | 0x40u);
    return static_cast<uint16_t>((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
  }
};

// Everything that both types offer.
#define MOCK_HALF_OPERATIONS(T)                                                      \
  inline T operator+(T a, T b) { return T((float)a + (float)b); }                    \
  inline T operator-(T a, T b) { return T((float)a - (float)b); }                    \
  inline T operator*(T a, T b) { return T((float)a * (float)b); }                    \
  inline T operator/(T a, T b) { return T((float)a / (float)b); }                    \
  inline T operator-(T a) { return T(-(float)a); }                                   \
  inline T &operator+=(T &a, T b) { return a = a + b; }                              \
  inline T &operator-=(T &a, T b) { return a = a - b; }                              \
  inline T &operator*=(T &a, T b) { return a = a * b; }                              \
  inline T &operator/=(T &a, T b) { return a = a / b; }                              \
  inline bool operator<(T a, T b) { return (float)a < (float)b; }                    \
  inline bool operator>(T a, T b) { return (float)a > (float)b; }                    \
  inline bool operator<=(T a, T b) { return (float)a <= (float)b; }                  \
  inline bool operator>=(T a, T b) { return (float)a >= (float)b; }                  \
  inline bool operator==(T a, T b) { return (float)a == (float)b; }                  \
  inline bool operator!=(T a, T b) { return (float)a != (float)b; }                  \
  inline bool __hisnan(T a) { return std::isnan((float)a); }                         \
  inline T __hmax(T a, T b) { return a > b ? a : b; }                                \
  inline T __hmin(T a, T b) { return a < b ? a : b; }                                \
  inline T __hmax_nan(T a, T b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmax(a, b); } \
  inline T __hmin_nan(T a, T b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmin(a, b); } \
  inline T __habs(T a) { return T(fabsf((float)a)); }                                \
  inline T hsqrt(T a) { return T(sqrtf((float)a)); }                                 \
  inline T hcos(T a) { return T(cosf((float)a)); }                                   \
  inline T hsin(T a) { return T(sinf((float)a)); }                                   \
  inline T hlog(T a) { return T(logf((float)a)); }                                   \
  inline T hexp(T a) { return T(expf((float)a)); }                                   \
  struct T##_pair { T x, y; };

MOCK_HALF_OPERATIONS(__half)
MOCK_HALF_OPERATIONS(__nv_bfloat16)

using half = __half;
using nv_bfloat16 = __nv_bfloat16;
using __half2 = __half_pair;
using half2 = __half_pair;
using __nv_bfloat162 = __nv_bfloat16_pair;

template <class Pair>
inline Pair __hadd2(Pair a, Pair b) { return {a.x + b.x, a.y + b.y}; }
template <class Pair>
inline Pair __hsub2(Pair a, Pair b) { return {a.x - b.x, a.y - b.y}; }
template <class Pair>
inline Pair __hmul2(Pair a, Pair b) { return {a.x * b.x, a.y * b.y}; }
template <class Pair>
inline Pair __h2div(Pair a, Pair b) { return {a.x / b.x, a.y / b.y}; }

inline float __half2float(__half x) { return static_cast<float>(x); }
inline __half __float2half(float x) { return __half(x); }
inline float __bfloat162float(__nv_bfloat16 x) { return static_cast<float>(x); }
inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
inline unsigned short __half_as_ushort(__half x) { return emulator::from_word<unsigned short>(emulator::to_word(x)); }
inline __half __ushort_as_half(unsigned short bits) { return __half(__half_raw{bits}); }

[[noreturn]] inline void no_8_bit_floats() { emulator::fail("the mock driver has no 8-bit floats"); }
struct __nv_fp8_e4m3 {
  unsigned char __x;
  __nv_fp8_e4m3() = default;
  template <class T>
  explicit __nv_fp8_e4m3(T) { no_8_bit_floats(); }
  operator float() const { no_8_bit_floats(); }
};
enum { __NV_E4M3 };
inline __half_raw __nv_cvt_fp8_to_halfraw(unsigned char, int) { no_8_bit_floats(); }

inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
inline double normcdf(double x) { return 0.5 * erfc(-x * 0.7071067811865476); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
