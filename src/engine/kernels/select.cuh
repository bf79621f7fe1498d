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
  // Halves of the sums of masses.
  uint32_t low[256];
  uint32_t high[256];
  uint32_t counts[256];
  uint64_t before;
  uint32_t digit;
  uint32_t found;
};

// Larger is better.
GM_DEVICE uint64_t gm_order(uint32_t key, uint32_t id) {
  return (uint64_t)key << GM_ID_BITS | (uint64_t)((1u << GM_ID_BITS) - 1u - id);
}

// Adds to a sum in two halves. Shared memory has atomics of 32 bits in hardware, of 64 bits only
// as a loop.
GM_DEVICE void gm_add_halves(uint32_t *low, uint32_t *high, uint64_t value) {
  const uint32_t part = (uint32_t)value;
  const uint32_t before = atomicAdd(low, part);
  // Whoever wraps the low half carries, so as many carries arrive as there were wraps.
  const uint32_t rest = (uint32_t)(value >> 32) + (uint32_t)(before + part < before);
  if (rest > 0u) atomicAdd(high, rest);
}

// What a thread has summed for one place of the histogram. Neighbours often share a place, which
// all threads would otherwise fight for.
struct GmRun {
  uint64_t measure;
  uint32_t count;
  uint32_t place;
};

GM_DEVICE void gm_flush(GmSelection &selection, const GmRun &run) {
  if (run.count == 0u) return;
  if (run.measure > 0) gm_add_halves(&selection.low[run.place], &selection.high[run.place], run.measure);
  atomicAdd(&selection.counts[run.place], run.count);
}

// The order of the last candidate of the shortest prefix whose measure reaches `limit` (above
// 0), or a number between it and the next one; 0 when the whole does not reach it. `candidate`
// gives order and measure of an index; an order of 0 is none. Where `COUNTS`, the measure is 1.
template <bool COUNTS, class Candidate>
GM_CALLED uint64_t gm_cut(GmSelection &selection, GmReduction &reduction, uint32_t count, uint64_t limit,
                          const Candidate &candidate) {
  uint64_t prefix = 0;
  uint64_t before = 0;
  for (uint32_t digit = GM_DIGITS; digit-- > 0u;) {
    const uint32_t shift = 8u * digit;
    selection.low[threadIdx.x] = 0u;
    selection.high[threadIdx.x] = 0u;
    selection.counts[threadIdx.x] = 0u;
    if (threadIdx.x == 0u) {
      selection.found = 0u;
      selection.before = 0;
      selection.digit = 0u;
    }
    __syncthreads();
    GmRun run = {0, 0u, 0u};
    for (uint32_t index = threadIdx.x; index < count; index += GM_THREADS) {
      uint64_t order, measure;
      candidate(index, order, measure);
      if (order != 0 && order >> (shift + 8u) == prefix) {
        const uint32_t place = (uint32_t)(order >> shift) & 255u;
        if (place != run.place) {
          gm_flush(selection, run);
          run.measure = 0;
          run.count = 0u;
          run.place = place;
        }
        if (!COUNTS) run.measure += measure;
        run.count += 1u;
      }
    }
    gm_flush(selection, run);
    __syncthreads();
    const uint32_t place = 255u - threadIdx.x;
    const uint64_t mass = (uint64_t)selection.high[place] << 32 | selection.low[place];
    const uint64_t own = COUNTS ? selection.counts[place] : mass;
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
