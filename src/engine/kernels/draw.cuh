// The mark and the draw: twins of src/sample/processors/watermark.rs and src/sample/draw.rs.
//
// Noise and membership are key streams asked for single tokens. Logarithms are computed only for
// candidates that can still win, which changes no result.
#ifndef GM_DRAW_CUH
#define GM_DRAW_CUH
#include "block.cuh"
#include "chacha.cuh"
#include "math.cuh"
#include "row.cuh"

// Whether a gate lets the mark through, given the sums before the mark.
GM_DEVICE bool gm_gate_open(const GmRow &row, uint64_t total, uint64_t surprisal) {
  if (row.gate == GM_ENTROPY_ABOVE) return gm_entropy(total, surprisal) > row.gate_value;
  if (row.gate == GM_MAX_PROBABILITY_AT_MOST) {
    return (double)GM_MASS_ONE / __ull2double_rn(total) <= row.gate_value;
  }
  return true;
}

GM_DEVICE bool gm_markable(const GmRow &row, const uint32_t *bits, uint32_t id) {
  return row.never_marked == GM_NONE || !gm_holds(bits + row.never_marked, id);
}

// Whether the mark's rule names a token.
GM_DEVICE bool gm_member(const GmRow &row, const uint32_t *bits, uint32_t id) {
  if (row.membership == GM_MEMBERS_BITS) return gm_holds(bits + row.members, id);
  return gm_word(row.mark_key, id) < row.threshold;
}

GM_DEVICE float gm_biased(const GmRow &row, float logit, bool green) {
  if (!(logit > GM_NEGATIVE_INFINITY)) return logit;
  return gm_finite(__fadd_rn(logit, __fmul_rn(row.delta, green ? 1.0f : 0.0f)));
}

// Above these bits' complement no candidate can win; see `Bound` in src/sample/draw.rs.
struct GmBound {
  int32_t left;    // the limit is (mass + 1) << left,
  int32_t right;   // or (mass + 1) >> right
  bool known;
};

GM_DEVICE GmBound gm_bound(float max, double best_score) {
  GmBound bound = {0, -1, false};
  const float magnitude = max < 0.0f ? -max : max;
  if (!(magnitude <= 16777216.0f)) return bound;
  const double scale = gm_exp((double)max - best_score) * 1.00001 * 2097152.0;
  const int64_t shift = (int64_t)(gm_bits(scale) >> 52) - 1022;
  if (shift >= 0 && shift <= 20) {
    bound.left = (int32_t)shift;
    bound.known = true;
  } else if (shift < 0) {
    bound.right = shift > -64 ? (int32_t)-shift : 63;
    bound.known = true;
  }
  return bound;
}

GM_DEVICE bool gm_excluded(const GmBound &bound, uint64_t mass, uint64_t bits) {
  if (!bound.known) return false;
  if (bound.right >= 0) return ~bits > (mass + 1) >> bound.right;
  return ~bits >= (mass + 1) << bound.left;
}

// The best candidate that a thread has seen.
struct GmRunner {
  GmBest best;
  GmBound bound;
};

GM_DEVICE GmRunner gm_runner() {
  GmRunner runner = {{0, GM_NONE, 0}, {0, -1, false}};
  return runner;
}

// Lets a candidate run; `mass` is relative to `max`.
GM_DEVICE void gm_run(GmRunner &runner, uint32_t id, float logit, float max, uint64_t mass, uint64_t bits) {
  if (gm_excluded(runner.bound, mass, bits)) return;
  const double score = (double)logit - gm_ln(gm_neg_ln_uniform(bits));
  const uint64_t key = gm_score_key(score);
  if (gm_beats(key, id, runner.best)) {
    runner.best.score = key;
    runner.best.id = id;
    runner.bound = gm_bound(max, score);
  }
}

// Greedy decoding: the logit alone.
GM_DEVICE void gm_run_greedy(GmRunner &runner, uint32_t id, float logit) {
  const uint64_t key = (uint64_t)gm_rank_key(logit) << 32;
  if (gm_beats(key, id, runner.best)) {
    runner.best.score = key;
    runner.best.id = id;
  }
}

#endif
