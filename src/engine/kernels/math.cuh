// The chain's arithmetic: the twin of src/sample/math.rs and src/prf/uniform.rs, operation for
// operation. What each function means and how exact it is stands there.
#ifndef GM_MATH_CUH
#define GM_MATH_CUH
#include "portable.cuh"

#define GM_MASS_ONE (1ull << 43)
#define GM_TOLERANCE 1e-7
#define GM_LN2_HI __longlong_as_double(0x3fe62e42fef00000ll)
#define GM_LN2_LO __longlong_as_double(0x3dd473de6af278edll)
#define GM_LN_2 0.693147180559945309417232121458
#define GM_LOG2_E 1.44269504088896340735992468100
#define GM_SQRT_2 1.41421356237309504880168872421
#define GM_FRAC_1_SQRT_2 0.707106781186547524400844362105
// 1.5 * 2^52 rounds to an integer in the low bits, 2^52 one in the low 52 bits.
#define GM_ROUND 6755399441055744.0
#define GM_ROUND_UNSIGNED 4503599627370496.0
#define GM_LOW_52 ((1ull << 52) - 1)
#define GM_LOWEST (-31.0)
// 2^-64.
#define GM_CELL (1.0 / (4294967296.0 * 4294967296.0))

GM_DEVICE uint64_t gm_bits(double value) { return (uint64_t)__double_as_longlong(value); }
GM_DEVICE double gm_double(uint64_t bits) { return __longlong_as_double((long long)bits); }

// The value, bounded to the finite numbers. Not for NaN.
GM_DEVICE float gm_finite(float value) {
  const float largest = __uint_as_float(0x7f7fffffu);
  return value > largest ? largest : value < -largest ? -largest : value;
}

// Orders as the numbers do; 0 and -0 have one key. Not for NaN.
GM_DEVICE uint32_t gm_rank_key(float value) {
  const uint32_t bits = __float_as_uint(__fadd_rn(value, 0.0f));
  const uint32_t sign = (uint32_t)((int32_t)bits >> 31);
  return bits ^ (sign | 0x80000000u);
}

// The number of a key; 0 for that of 0 and -0.
GM_DEVICE float gm_number_of_key(uint32_t key) {
  return __uint_as_float(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}

// The same for scores: above 0 for every number, so that 0 can stand for none.
GM_DEVICE uint64_t gm_score_key(double score) {
  const uint64_t bits = gm_bits(__dadd_rn(score, 0.0));
  return bits & (1ull << 63) ? ~bits : bits | (1ull << 63);
}

GM_DEVICE double gm_power_of_two(long long k) { return gm_double((uint64_t)(k + 1023) << 52); }

GM_CALLED double gm_exp(double x) {
  if (x != x) return x;
  x = x < -746.0 ? -746.0 : x > 710.0 ? 710.0 : x;
  const double shifted = x * GM_LOG2_E + GM_ROUND;
  const double whole = shifted - GM_ROUND;
  const double r = (x - whole * GM_LN2_HI) - whole * GM_LN2_LO;
  double sum = 1.0 / 6227020800.0;
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  const double value = 1.0 + (r + r * r * sum);
  const long long k = (long long)(gm_bits(shifted) - gm_bits(GM_ROUND));
  const long long half = k >> 1;
  return value * gm_power_of_two(half) * gm_power_of_two(k - half);
}

GM_DEVICE double gm_twice_atanh(double s) {
  const double square = s * s;
  double tail = 1.0 / 21.0;
  tail = tail * square + 1.0 / 19.0;
  tail = tail * square + 1.0 / 17.0;
  tail = tail * square + 1.0 / 15.0;
  tail = tail * square + 1.0 / 13.0;
  tail = tail * square + 1.0 / 11.0;
  tail = tail * square + 1.0 / 9.0;
  tail = tail * square + 1.0 / 7.0;
  tail = tail * square + 1.0 / 5.0;
  tail = tail * square + 1.0 / 3.0;
  const double twice = s + s;
  return twice + twice * (square * tail);
}

// For x > 0 and finite, the only arguments here.
GM_CALLED double gm_ln(double x) {
  double shift = 0.0;
  if (x < gm_double(0x0010000000000000ull)) {
    x = x * 18014398509481984.0;
    shift = 54.0;
  }
  const uint64_t bits = gm_bits(x);
  double exponent = (double)(bits >> 52) - 1023.0 - shift;
  double mantissa = gm_double((bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
  if (mantissa > GM_SQRT_2) {
    mantissa = mantissa * 0.5;
    exponent = exponent + 1.0;
  }
  const double fraction = gm_twice_atanh((mantissa - 1.0) / (mantissa + 1.0));
  return exponent * GM_LN2_HI + (fraction + exponent * GM_LN2_LO);
}

// -ln u for u = (bits + 1/2) / 2^64.
GM_CALLED double gm_neg_ln_uniform(uint64_t bits) {
  const double u = (__ull2double_rn(bits) + 0.5) * GM_CELL;
  if (u < GM_FRAC_1_SQRT_2) return -gm_ln(u);
  const double v = (__ull2double_rn(~bits) + 0.5) * GM_CELL;
  return gm_twice_atanh(v / (2.0 - v));
}

GM_DEVICE double gm_bounded(float difference) {
  const double wide = (double)difference;
  return wide > GM_LOWEST ? wide : GM_LOWEST;
}

// round(2^43 * exp(difference)) for difference <= 0.
GM_DEVICE uint64_t gm_mass(float difference) {
  const double wide = gm_bounded(difference);
  const double shifted = wide * GM_LOG2_E + GM_ROUND;
  const double s = (wide - (shifted - GM_ROUND) * GM_LN_2) * 0.125;
  const double square = s * s;
  const double high =
      (1.0 / 24.0 + s * (1.0 / 120.0)) + square * (1.0 / 720.0 + s * (1.0 / 5040.0));
  const double root = (1.0 + s) + square * ((0.5 + s * (1.0 / 6.0)) + square * high);
  const double fourth = (root * root) * (root * root);
  const double value = fourth * fourth;
  const double scaled =
      gm_double(gm_bits(value) + (gm_bits(shifted) << 52) + (43ull << 52));
  return gm_bits(scaled + GM_ROUND_UNSIGNED) & GM_LOW_52;
}

// round(mass * -difference).
GM_DEVICE uint64_t gm_surprisal_mass(float difference, uint64_t mass) {
  const double weight = gm_double(mass | gm_bits(GM_ROUND_UNSIGNED)) - GM_ROUND_UNSIGNED;
  return gm_bits(weight * -gm_bounded(difference) + GM_ROUND_UNSIGNED) & GM_LOW_52;
}

// Adds the mass of a token and its part of the entropy; gives the mass. Where the mass rounds to
// 0, as for most of a vocabulary at a low temperature, it costs no arithmetic in f64.
GM_DEVICE uint64_t gm_weighed(float difference, uint64_t &total, uint64_t &surprisal) {
  // 2^43 * exp(-30.6) < 0.46.
  if (difference < -30.6f) return 0;
  const uint64_t mass = gm_mass(difference);
  total += mass;
  surprisal += gm_surprisal_mass(difference, mass);
  return mass;
}

// ln of a sum of masses relative to the best candidate.
GM_DEVICE double gm_ln_mass(uint64_t mass) {
  return gm_ln(__ull2double_rn(mass) / (double)GM_MASS_ONE);
}

// Entropy in nats of a distribution with these sums.
GM_DEVICE double gm_entropy(uint64_t total, uint64_t surprisal) {
  return gm_ln_mass(total) + __ull2double_rn(surprisal) / __ull2double_rn(total);
}

// The smallest mass that stands for at least the probability p.
GM_DEVICE uint64_t gm_mass_of_probability(double p, uint64_t total) {
  const double mass = ceil(p * __ull2double_rn(total));
  return mass > 0.0 ? (uint64_t)mass : 0;
}

#endif
