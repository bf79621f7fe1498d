// Reductions over the 256 threads of a block.
//
// Sums are of integers and maxima have a total order, so no result depends on the order in which
// threads meet. Every function is called by all threads and ends behind a barrier: its shared
// memory can be used again at once.
#ifndef GM_BLOCK_CUH
#define GM_BLOCK_CUH
#include "portable.cuh"

#define GM_THREADS 256u
#define GM_WARPS (GM_THREADS / 32u)

#define GM_LANE (threadIdx.x & 31u)
#define GM_WARP (threadIdx.x >> 5)

struct GmReduction {
  uint64_t sums[GM_WARPS];
  uint32_t words[GM_WARPS];
};

GM_DEVICE uint64_t gm_warp_sum(uint64_t value) {
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(GM_FULL_WARP, value, step);
  return value;
}

GM_DEVICE uint32_t gm_warp_max(uint32_t value) {
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) {
    const uint32_t other = __shfl_xor_sync(GM_FULL_WARP, value, step);
    value = other > value ? other : value;
  }
  return value;
}

GM_DEVICE uint64_t gm_block_sum(GmReduction &shared, uint64_t value) {
  value = gm_warp_sum(value);
  if (GM_LANE == 0) shared.sums[GM_WARP] = value;
#ifndef GREENMARK_PLANT_MISSING_BARRIER
  __syncthreads();
#endif
  value = 0;
#pragma unroll
  for (uint32_t warp = 0; warp < GM_WARPS; warp++) value += shared.sums[warp];
  __syncthreads();
  return value;
}

GM_DEVICE uint32_t gm_block_max(GmReduction &shared, uint32_t value) {
  value = gm_warp_max(value);
  if (GM_LANE == 0) shared.words[GM_WARP] = value;
  __syncthreads();
  value = 0;
#pragma unroll
  for (uint32_t warp = 0; warp < GM_WARPS; warp++) {
    value = shared.words[warp] > value ? shared.words[warp] : value;
  }
  __syncthreads();
  return value;
}

// The sum of the values of this thread and of those before it.
GM_DEVICE uint64_t gm_block_scan(GmReduction &shared, uint64_t value) {
#pragma unroll
  for (int step = 1; step < 32; step <<= 1) {
    const uint64_t before = __shfl_up_sync(GM_FULL_WARP, value, step);
    if (GM_LANE >= (uint32_t)step) value += before;
  }
  if (GM_LANE == 31u) shared.sums[GM_WARP] = value;
  __syncthreads();
#pragma unroll
  for (uint32_t warp = 0; warp < GM_WARPS; warp++) {
    if (warp < GM_WARP) value += shared.sums[warp];
  }
  __syncthreads();
  return value;
}

// A candidate of the draw. The larger score wins, of equals the smaller id; a score of 0 is none.
struct GmBest {
  uint64_t score;
  uint32_t id;
  uint32_t unused;
};

GM_DEVICE bool gm_beats(uint64_t score, uint32_t id, const GmBest &best) {
  return score > best.score || (score == best.score && id < best.id);
}

GM_DEVICE GmBest gm_warp_best(GmBest best) {
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) {
    const uint64_t score = __shfl_xor_sync(GM_FULL_WARP, best.score, step);
    const uint32_t id = __shfl_xor_sync(GM_FULL_WARP, best.id, step);
    if (gm_beats(score, id, best)) {
      best.score = score;
      best.id = id;
    }
  }
  return best;
}

GM_DEVICE GmBest gm_block_best(GmReduction &shared, GmBest best) {
  best = gm_warp_best(best);
  if (GM_LANE == 0) {
    shared.sums[GM_WARP] = best.score;
    shared.words[GM_WARP] = best.id;
  }
  __syncthreads();
#pragma unroll
  for (uint32_t warp = 0; warp < GM_WARPS; warp++) {
    if (gm_beats(shared.sums[warp], shared.words[warp], best)) {
      best.score = shared.sums[warp];
      best.id = shared.words[warp];
    }
  }
  __syncthreads();
  return best;
}

#endif
