// The truncation members, in the row's order, by one block: twins of src/sample/processors.
//
// They work on candidates that lie somewhere in memory: all tokens of a row, or a list of the
// best. A dropped candidate has a logit of negative infinity. Behind a list stands the rest of
// the row, of which only sums are known; as long as the rest is there, nothing has been dropped.
// A member either settles the rest (drops it) or says that the list is not enough.
#ifndef GM_TRUNCATE_CUH
#define GM_TRUNCATE_CUH
#include "block.cuh"
#include "edits.cuh"
#include "math.cuh"
#include "row.cuh"
#include "select.cuh"

struct GmCandidates {
  float *logits;
  const uint32_t *ids;  // null: the index is the id
  uint32_t count;
};

GM_DEVICE uint32_t gm_id(const GmCandidates &candidates, uint32_t index) {
  return candidates.ids ? candidates.ids[index] : index;
}

// What normalises candidates, and the entropy's sum.
struct GmSums {
  float max;
  uint32_t live;
  uint64_t total;
  uint64_t surprisal;
};

// Sums of squares of distances: low and high are 32 bits apart.
struct GmSpread {
  uint64_t sum;
  uint64_t squares_low;
  uint64_t squares_high;
};

// What is known of a row beside the list. `whole` are the sums of list and rest together.
struct GmRest {
  uint32_t live;      // 0: settled
  uint32_t flags;     // which of the sums below were made
  uint32_t floor;     // every key of the rest is below
  float min;          // the smallest logit of list and rest
  uint64_t heaviest;  // the largest mass of the rest
  GmSums whole;
  GmSpread spread;    // of list and rest
};

struct GmShared {
  GmReduction reduction;
  GmSelection selection;
};

GM_CALLED GmSums gm_sums(GmShared &shared, const GmCandidates &candidates) {
  GmSums sums;
  uint32_t key = 0u;
  uint64_t live = 0;
  for (uint32_t i = threadIdx.x; i < candidates.count; i += GM_THREADS) {
    const float logit = candidates.logits[i];
    const uint32_t own = gm_rank_key(logit);
    key = own > key ? own : key;
    live += logit > GM_NEGATIVE_INFINITY;
  }
  sums.max = gm_number_of_key(gm_block_max(shared.reduction, key));
  uint64_t total = 0;
  uint64_t surprisal = 0;
  for (uint32_t i = threadIdx.x; i < candidates.count; i += GM_THREADS) {
    gm_weighed(__fsub_rn(candidates.logits[i], sums.max), total, surprisal);
  }
  sums.live = (uint32_t)gm_block_sum(shared.reduction, live);
  sums.total = gm_block_sum(shared.reduction, total);
  sums.surprisal = gm_block_sum(shared.reduction, surprisal);
  return sums;
}

// Drops what `keeps` refuses. A candidate is changed by the thread that looks at it.
template <class Keeps>
GM_DEVICE void gm_retain(const GmCandidates &candidates, const Keeps &keeps) {
  for (uint32_t i = threadIdx.x; i < candidates.count; i += GM_THREADS) {
    const float logit = candidates.logits[i];
    if (logit > GM_NEGATIVE_INFINITY && !keeps(i, logit)) candidates.logits[i] = GM_NEGATIVE_INFINITY;
  }
  __syncthreads();
}

// The cut behind the `count` best; `count` is at most the number of live candidates.
GM_CALLED uint64_t gm_cut_count(GmShared &shared, const GmCandidates &candidates, uint32_t count) {
  return gm_cut<true>(shared.selection, shared.reduction, candidates.count, count,
                [&](uint32_t i, uint64_t &order, uint64_t &measure) {
                  const float logit = candidates.logits[i];
                  const bool live = logit > GM_NEGATIVE_INFINITY;
                  order = live ? gm_order(gm_rank_key(logit), gm_id(candidates, i)) : 0;
                  measure = 1;
                });
}

// Keeps the shortest prefix, in the order of `rank`, whose mass reaches `limit`, and at least
// `at_least` candidates.
template <class Rank>
GM_DEVICE void gm_keep_mass(GmShared &shared, const GmCandidates &candidates, float max, uint64_t limit,
                            uint32_t at_least, const Rank &rank) {
  const auto place = [&](uint32_t i, uint64_t &order, float &logit) {
    logit = candidates.logits[i];
    order = logit > GM_NEGATIVE_INFINITY ? gm_order(rank(logit), gm_id(candidates, i)) : 0;
  };
  uint64_t last = gm_cut<false>(shared.selection, shared.reduction, candidates.count, limit > 0 ? limit : 1,
                         [&](uint32_t i, uint64_t &order, uint64_t &measure) {
                           float logit;
                           place(i, order, logit);
                           measure = gm_mass(__fsub_rn(logit, max));
                         });
  if (at_least > 1u) {
    const uint64_t counted =
        gm_cut<true>(shared.selection, shared.reduction, candidates.count, at_least,
               [&](uint32_t i, uint64_t &order, uint64_t &measure) {
                 float logit;
                 place(i, order, logit);
                 measure = 1;
               });
    last = counted < last ? counted : last;
  }
  gm_retain(candidates, [&](uint32_t i, float) {
    uint64_t order;
    float logit;
    place(i, order, logit);
    return order >= last;
  });
}

// Keeps the candidates of mass `limit` or more, and at least `at_least`.
GM_DEVICE void gm_keep_heavy(GmShared &shared, const GmCandidates &candidates, float max, uint64_t limit,
                             uint32_t at_least) {
  const uint64_t last =
      at_least > 1u ? gm_cut_count(shared, candidates, at_least) : ~0ull;
  gm_retain(candidates, [&](uint32_t i, float logit) {
    return gm_mass(__fsub_rn(logit, max)) >= limit ||
           gm_order(gm_rank_key(logit), gm_id(candidates, i)) >= last;
  });
}

// Units per nat for logits that spread over `range` nats.
GM_DEVICE double gm_sigma_unit(double range) {
  double unit = 1048576.0;
  while (range * unit > 17179869184.0) unit = unit * 0.5;
  return unit;
}

GM_DEVICE void gm_spread_add(GmSpread &spread, float max, float logit, double unit) {
  const uint64_t distance = (uint64_t)(((double)max - (double)logit) * unit);
  const uint64_t low = distance * distance;
  const uint64_t high = __umul64hi(distance, distance);
  spread.sum += distance;
  spread.squares_low += low & 0xffffffffull;
  spread.squares_high += low >> 32 | high << 32;
}

// The nearest f64 to high * 2^64 + low, ties to even.
GM_DEVICE double gm_wide_to_double(uint64_t high, uint64_t low) {
  if (high == 0) return __ull2double_rn(low);
  const int shift = __clzll((long long)high);
  uint64_t top = shift ? high << shift | low >> (64 - shift) : high;
  const uint64_t rest = shift ? low << shift : low;
  // A bit that is lost only decides ties, so any bit set below stands for all of them.
  top |= rest != 0;
  return __ull2double_rn(top) * gm_power_of_two(64 - shift);
}

// The smallest logit that top-n-sigma keeps.
GM_CALLED float gm_sigma_lowest(const GmSums &sums, const GmSpread &spread, double unit, double n) {
  // squares = high * 2^32 + low, as two words.
  uint64_t squares_low = spread.squares_low;
  uint64_t squares_high = spread.squares_high >> 32;
  const uint64_t shifted = spread.squares_high << 32;
  squares_low += shifted;
  squares_high += squares_low < shifted;
  // live * squares - sum^2, exact and not negative.
  const uint64_t live = sums.live;
  uint64_t low = live * squares_low;
  uint64_t high = __umul64hi(live, squares_low) + live * squares_high;
  const uint64_t square_low = spread.sum * spread.sum;
  const uint64_t square_high = __umul64hi(spread.sum, spread.sum);
  high -= square_high + (low < square_low);
  low -= square_low;
  const double sigma = __dsqrt_rn(gm_wide_to_double(high, low)) / ((double)live * unit);
  const float lowest = __double2float_rn((double)sums.max - n * sigma);
  return lowest < sums.max ? lowest : sums.max;
}

// Applies the row's truncations. `false`: the list is not enough, and its candidates may have
// been changed.
GM_CALLED bool gm_truncate(GmShared &shared, const GmRow &row, const GmCandidates &candidates, GmRest &rest) {
  for (uint32_t index = 0; index < row.stages; index++) {
    const GmStage &stage = row.stage[index];
    GmSums listed = gm_sums(shared, candidates);
    const bool partial = rest.live > 0u;
    const GmSums sums = partial ? rest.whole : listed;
    const bool has_total = !partial || (rest.flags & GM_NEEDS_TOTAL);
    const uint32_t at_least = stage.count < sums.live ? stage.count : sums.live;
    if (stage.kind == GM_STAGE_TEMPERATURE) {
      if (partial) return false;
      const float temperature = (float)stage.value;
      for (uint32_t i = threadIdx.x; i < candidates.count; i += GM_THREADS) {
        candidates.logits[i] = gm_divided(candidates.logits[i], temperature);
      }
      __syncthreads();
    } else if (stage.kind == GM_STAGE_TOP_K) {
      if (stage.count >= sums.live) continue;
      if (stage.count > listed.live) return false;
      const uint64_t last = gm_cut_count(shared, candidates, stage.count);
      gm_retain(candidates, [&](uint32_t i, float logit) {
        return gm_order(gm_rank_key(logit), gm_id(candidates, i)) >= last;
      });
      rest.live = 0u;
    } else if (stage.kind == GM_STAGE_TOP_P) {
      if (!has_total || at_least > listed.live) return false;
      const uint64_t limit = gm_mass_of_probability(stage.value - GM_TOLERANCE, sums.total);
      if (partial && listed.total < (limit > 0 ? limit : 1)) return false;
      gm_keep_mass(shared, candidates, sums.max, limit, at_least, [](float logit) { return gm_rank_key(logit); });
      rest.live = 0u;
    } else if (stage.kind == GM_STAGE_MIN_P || stage.kind == GM_STAGE_EPSILON || stage.kind == GM_STAGE_ETA) {
      if (!has_total || at_least > listed.live) return false;
      double threshold = stage.value;
      if (stage.kind == GM_STAGE_MIN_P) {
        threshold = stage.value * ((double)GM_MASS_ONE / __ull2double_rn(sums.total));
      } else if (stage.kind == GM_STAGE_ETA) {
        const double entropy = gm_entropy(sums.total, sums.surprisal);
        const double loosened = __dsqrt_rn(stage.value) * gm_exp(-entropy);
        threshold = stage.value < loosened ? stage.value : loosened;
      }
      uint64_t limit = gm_mass_of_probability(threshold - GM_TOLERANCE, sums.total);
      limit = limit < GM_MASS_ONE ? limit : GM_MASS_ONE;
      if (partial && rest.heaviest >= limit) return false;
      gm_keep_heavy(shared, candidates, sums.max, limit, at_least);
      rest.live = 0u;
    } else if (stage.kind == GM_STAGE_TYPICAL) {
      if (partial) return false;
      const double entropy = gm_entropy(sums.total, sums.surprisal);
      const double offset = gm_ln_mass(sums.total) - entropy;
      const float max = sums.max;
      const uint64_t limit = gm_mass_of_probability(stage.value - GM_TOLERANCE, sums.total);
      gm_keep_mass(shared, candidates, max, limit, at_least, [=](float logit) {
        const double deviation = offset - (double)__fsub_rn(logit, max);
        const uint32_t key = ~gm_rank_key(__double2float_rn(deviation < 0.0 ? -deviation : deviation));
        return key > 1u ? key : 1u;
      });
    } else if (stage.kind == GM_STAGE_TOP_N_SIGMA) {
      GmSpread spread = rest.spread;
      float min = rest.min;
      if (partial && (index > 0u || !(rest.flags & GM_NEEDS_SIGMA) || at_least > listed.live)) return false;
      if (!partial) {
        uint32_t lowest = 0u;
        for (uint32_t i = threadIdx.x; i < candidates.count; i += GM_THREADS) {
          const uint32_t key = ~gm_rank_key(candidates.logits[i]);
          if (candidates.logits[i] > GM_NEGATIVE_INFINITY && key > lowest) lowest = key;
        }
        min = gm_number_of_key(~gm_block_max(shared.reduction, lowest));
      }
      const double unit = gm_sigma_unit((double)sums.max - (double)min);
      if (!partial) {
        GmSpread own = {0, 0, 0};
        for (uint32_t i = threadIdx.x; i < candidates.count; i += GM_THREADS) {
          const float logit = candidates.logits[i];
          if (logit > GM_NEGATIVE_INFINITY) gm_spread_add(own, sums.max, logit, unit);
        }
        spread.sum = gm_block_sum(shared.reduction, own.sum);
        spread.squares_low = gm_block_sum(shared.reduction, own.squares_low);
        spread.squares_high = gm_block_sum(shared.reduction, own.squares_high);
      }
      const uint32_t from = gm_rank_key(gm_sigma_lowest(sums, spread, unit, stage.value));
      if (partial && from < rest.floor) return false;
      const uint64_t last = at_least > 1u ? gm_cut_count(shared, candidates, at_least) : ~0ull;
      gm_retain(candidates, [&](uint32_t i, float logit) {
        const uint32_t key = gm_rank_key(logit);
        return key >= from || gm_order(key, gm_id(candidates, i)) >= last;
      });
      rest.live = 0u;
    } else {  // GM_STAGE_XTC
      if (partial) return false;
      const uint64_t limit = gm_mass_of_probability(stage.value - GM_TOLERANCE, sums.total);
      uint64_t likely = 0;
      GmBest last = {0, GM_NONE, 0};
      for (uint32_t i = threadIdx.x; i < candidates.count; i += GM_THREADS) {
        const float logit = candidates.logits[i];
        if (logit > GM_NEGATIVE_INFINITY && gm_mass(__fsub_rn(logit, sums.max)) >= limit) {
          likely += 1;
          // The least likely one, of equals the largest id.
          const uint64_t score = ~gm_order(gm_rank_key(logit), gm_id(candidates, i));
          if (gm_beats(score, gm_id(candidates, i), last)) {
            last.score = score;
            last.id = gm_id(candidates, i);
          }
        }
      }
      likely = gm_block_sum(shared.reduction, likely);
      const uint32_t spared = gm_block_best(shared.reduction, last).id;
      if (likely > 1) {
        const float max = sums.max;
        gm_retain(candidates, [&](uint32_t i, float logit) {
          return gm_mass(__fsub_rn(logit, max)) < limit || gm_id(candidates, i) == spared;
        });
      }
    }
  }
  return rest.live == 0u;
}

#endif
