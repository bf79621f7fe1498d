// What the blocks of a row share between and during the two launches of the sampler, and how the
// last of them knows that it is the last.
#ifndef GM_STATE_CUH
#define GM_STATE_CUH
#include "truncate.cuh"

// The most tokens on a row's list, and the width of the histogram: sign, exponent and three bits
// of the mantissa.
#define GM_LIST 2048u
#define GM_HISTOGRAM 4096u
#define GM_HISTOGRAM_SHIFT 20u

// What the blocks of a row share. Zero before the first launch and after every row.
struct GmState {
  uint64_t raw_total;
  uint64_t raw_surprisal;
  uint64_t total;
  uint64_t surprisal;
  uint64_t green;
  uint64_t marked_total;
  GmSpread spread;
  uint32_t scanned;
  uint32_t weighed;
  uint32_t nan;
  uint32_t infinite;
  uint32_t live;
  uint32_t culprit;
  uint32_t raw_max;     // rank keys
  uint32_t max;
  uint32_t min;         // complement of a rank key
  uint32_t marked_max;
  uint32_t floor;
  uint32_t listed;
  uint32_t rest_max;    // of the tokens that are not listed
  uint32_t unused;
};

struct GmListed {
  uint32_t id;
  float logit;
};

GM_DEVICE GmInputs gm_inputs(const float *logits, const GmEntry *entries, const uint32_t *bits,
                             uint32_t vocab, uint32_t stride) {
  GmInputs in;
  in.logits = logits + (size_t)blockIdx.y * stride;
  in.entries = entries;
  in.bits = bits;
  in.vocab = vocab;
  in.aligned = ((uint64_t)in.logits & 15u) == 0u;
  return in;
}

// Whether this is the last block of its row to arrive. Everything that the others wrote before
// they arrived can then be read.
GM_DEVICE bool gm_arrive(uint32_t *arrived, uint32_t &shared_flag) {
  __syncthreads();
  if (threadIdx.x == 0u) {
    // The barrier made the block's writes this thread's to publish, and passes on to the block what
    // this thread has seen of the other blocks.
    __threadfence();
    shared_flag = atomicAdd(arrived, 1u) + 1u == gridDim.x;
    __threadfence();
  }
  __syncthreads();
  return shared_flag != 0u;
}

// A value that other blocks of this launch wrote.
GM_DEVICE uint32_t gm_fresh(const uint32_t *place) { return *(const volatile uint32_t *)place; }
GM_DEVICE uint64_t gm_fresh(const uint64_t *place) { return *(const volatile uint64_t *)place; }

#endif
