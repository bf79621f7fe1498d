// Where to cut an ordered set without ordering it: the twin of src/sample/select.rs.
//
// Candidates are ordered by a u32 key, larger first, ties by ascending id. Key and complement of
// the id together are one number that no two candidates share, so a cut is a single threshold
// and does not depend on how candidates are stored. Its digits are found one after the other
// from a histogram of 256 places.
#ifndef GM_SELECT_CUH
#define GM_SELECT_CUH
#include "block.cuh"
#include "math.cuh"

#define GM_DIGITS 7u
#define GM_ID_BITS 24u

struct GmSelection {
  uint64_t measures[256];
  uint32_t counts[256];
  uint64_t before;
  uint32_t digit;
  uint32_t found;
};

// Larger is better.
GM_DEVICE uint64_t gm_order(uint32_t key, uint32_t id) {
  return (uint64_t)key << GM_ID_BITS | (uint64_t)((1u << GM_ID_BITS) - 1u - id);
}

// The order of the last candidate of the shortest prefix whose measure reaches `limit` (above
// 0), or a number between it and the next one; 0 when the whole does not reach it. `candidate`
// gives order and measure of an index; an order of 0 is none.
template <class Candidate>
GM_CALLED uint64_t gm_cut(GmSelection &selection, GmReduction &reduction, uint32_t count, uint64_t limit,
                          const Candidate &candidate) {
  uint64_t prefix = 0;
  uint64_t before = 0;
  for (uint32_t digit = GM_DIGITS; digit-- > 0u;) {
    const uint32_t shift = 8u * digit;
    selection.measures[threadIdx.x] = 0;
    selection.counts[threadIdx.x] = 0u;
    if (threadIdx.x == 0u) {
      selection.found = 0u;
      selection.before = 0;
      selection.digit = 0u;
    }
    __syncthreads();
    for (uint32_t index = threadIdx.x; index < count; index += GM_THREADS) {
      uint64_t order, measure;
      candidate(index, order, measure);
      if (order != 0 && order >> (shift + 8u) == prefix) {
        const uint32_t place = (uint32_t)(order >> shift) & 255u;
        gm_atomic_add(&selection.measures[place], measure);
        atomicAdd(&selection.counts[place], 1u);
      }
    }
    __syncthreads();
    const uint32_t place = 255u - threadIdx.x;
    const uint64_t own = selection.measures[place];
    const uint64_t reached = before + gm_block_scan(reduction, own);
    if (reached >= limit && reached - own < limit) {
      selection.before = reached - own;
      selection.digit = place;
      selection.found = 1u;
    }
    __syncthreads();
    const bool found = selection.found != 0u;
    before = selection.before;
    prefix = prefix << 8 | selection.digit;
    const bool alone = found && selection.counts[selection.digit] == 1u;
    // What was read here is written again in the next round, or by the next cut.
    __syncthreads();
    if (!found) return 0;
    if (alone) return prefix << shift;
  }
  return prefix;
}

#endif
