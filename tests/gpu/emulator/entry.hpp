// The sampler's kernels as functions of the host.
#pragma once
#include "sampler.cuh"

extern "C" {
// Two launches over rows of `stride` logits; `results` has one place a row. Blocks run on
// `workers` threads, in an order shuffled by `order_seed` (0: as they come). 0 when the scratch
// memory is clean afterwards, as the next step needs it.
int gm_emulated_sample(const float *logits, const GmRow *rows, const GmEntry *entries, const uint32_t *bits,
                       uint32_t count, uint32_t vocab, uint32_t stride, GmResult *results, unsigned workers,
                       uint64_t order_seed);
// Counts a prompt in `words`, which are zero.
void gm_emulated_begin(uint32_t *words, const uint32_t *ids, uint32_t count, uint32_t window, uint32_t vocab);
}
