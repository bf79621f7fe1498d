// What the tests call: the sampler's kernels, launched on the CPU in memory of the caller.
#ifndef GREENMARK_EMULATOR
#define GREENMARK_EMULATOR 1
#endif
#include "entry.hpp"

#include <cstddef>
#include <cstring>
#include <vector>

namespace {

template <class T>
bool all_zero(const std::vector<T> &values) {
  const unsigned char *bytes = (const unsigned char *)values.data();
  for (size_t i = 0; i < values.size() * sizeof(T); i++) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

}  // namespace

extern "C" {

int gm_emulated_sample(const float *logits, const GmRow *rows, const GmEntry *entries, const uint32_t *bits,
                       uint32_t count, uint32_t vocab, uint32_t stride, GmResult *results, unsigned workers,
                       uint64_t order_seed) {
  const uint32_t chunks = (vocab + GM_CHUNK - 1) / GM_CHUNK;
  std::vector<GmState> states(count);
  std::vector<uint32_t> histograms((size_t)count * GM_HISTOGRAM);
  std::vector<GmBest> best((size_t)count * chunks);
  std::vector<GmListed> lists((size_t)count * GM_LIST);
  std::vector<float> dense((size_t)count * vocab);
  const dim3 grid(chunks, count);
  const dim3 block(GM_THREADS);
  emulator::launch(grid, block, 0, [&] {
    gm_scan(logits, rows, entries, bits, states.data(), histograms.data(), vocab, stride);
  }, workers, order_seed);
  emulator::launch(grid, block, 0, [&] {
    gm_weigh(logits, rows, entries, bits, states.data(), best.data(), lists.data(), dense.data(), results, vocab,
             stride);
  }, workers, order_seed);
  // The next step starts from what this one left.
  return all_zero(states) && all_zero(histograms) ? 0 : 1;
}

void gm_emulated_begin(uint32_t *words, const uint32_t *ids, uint32_t count, uint32_t window, uint32_t vocab) {
  emulator::launch(dim3(1), dim3(GM_THREADS), 0, [&] { gm_begin(words, ids, count, window, vocab); });
}

void gm_emulated_layout(size_t *out) {
  const size_t layout[] = {
      sizeof(GmRow), sizeof(GmResult), sizeof(GmEdit), sizeof(GmStage), sizeof(GmEntry),
      offsetof(GmRow, mark_key), offsetof(GmRow, path), offsetof(GmRow, delta), offsetof(GmRow, edit),
      offsetof(GmRow, stage), offsetof(GmResult, raw_logit), offsetof(GmResult, raw_total), offsetof(GmResult, total),
      GM_CHUNK, GM_LIST, GM_HISTOGRAM, sizeof(GmState), sizeof(GmBest), sizeof(GmListed)};
  memcpy(out, layout, sizeof layout);
}

double gm_emulated_exp(double x) { return gm_exp(x); }
double gm_emulated_ln(double x) { return gm_ln(x); }
double gm_emulated_neg_ln_uniform(uint64_t bits) { return gm_neg_ln_uniform(bits); }
uint64_t gm_emulated_mass(float difference) { return gm_mass(difference); }
uint64_t gm_emulated_surprisal_mass(float difference, uint64_t mass) { return gm_surprisal_mass(difference, mass); }
uint32_t gm_emulated_rank_key(float value) { return gm_rank_key(value); }
double gm_emulated_wide_to_double(uint64_t high, uint64_t low) { return gm_wide_to_double(high, low); }

}  // extern "C"
