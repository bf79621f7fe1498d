// The end of a row: the mark and the draw among the candidates that are left, by one block.
#ifndef GM_FINISH_CUH
#define GM_FINISH_CUH
#include "draw.cuh"
#include "truncate.cuh"

// The bits of a token's noise: the draw's, or the mark's where the mark races.
GM_DEVICE uint64_t gm_noise(const GmRow &row, const uint32_t *bits, bool marked, uint32_t id) {
  const bool keyed = marked && row.action == GM_RACE && gm_markable(row, bits, id);
  return gm_word_pair(keyed ? row.mark_key : row.draw_key, id);
}

// Marks and draws; fills what the result says of the distributions. The candidates' logits become
// those after the mark.
GM_CALLED void gm_finish(GmShared &shared, const GmRow &row, const GmInputs &in, const GmCandidates &candidates,
                         GmResult &result) {
  const GmSums before = gm_sums(shared, candidates);
  result.survivors = before.live;
  result.unmarked_max = before.max;
  result.unmarked_total = before.total;
  result.unmarked_surprisal = before.surprisal;
  const bool open = gm_gate_open(row, before.total, before.surprisal);
  const bool biased = open && row.action == GM_BIAS;
  GmSums after = before;
  if (biased) {
    const bool limited = row.scope > 0u && row.scope < before.live;
    const uint64_t last = limited ? gm_cut_count(shared, candidates, row.scope) : 0;
    uint64_t green_mass = 0;
    for (uint32_t i = threadIdx.x; i < candidates.count; i += GM_THREADS) {
      const float logit = candidates.logits[i];
      if (!(logit > GM_NEGATIVE_INFINITY)) continue;
      const uint32_t id = gm_id(candidates, i);
      const bool green = gm_order(gm_rank_key(logit), id) >= last && gm_markable(row, in.bits, id) &&
                         gm_member(row, in.bits, id);
      if (green) green_mass += gm_mass(__fsub_rn(logit, before.max));
      candidates.logits[i] = gm_biased(row, logit, green);
    }
    result.green = gm_block_sum(shared.reduction, green_mass);
    after = gm_sums(shared, candidates);
  }
  result.marked = biased;
  result.max = after.max;
  result.total = after.total;
  GmRunner runner = gm_runner();
  for (uint32_t i = threadIdx.x; i < candidates.count; i += GM_THREADS) {
    const float logit = candidates.logits[i];
    if (!(logit > GM_NEGATIVE_INFINITY)) continue;
    const uint32_t id = gm_id(candidates, i);
    if (row.decoding == GM_GREEDY) {
      gm_run_greedy(runner, id, logit);
    } else {
      const uint64_t mass = gm_mass(__fsub_rn(logit, after.max));
      gm_run(runner, id, logit, after.max, mass, gm_noise(row, in.bits, open, id));
    }
  }
  result.token = gm_block_best(shared.reduction, runner.best).id;
  // The winner's logit after the mark is known to the thread that holds it.
  for (uint32_t i = threadIdx.x; i < candidates.count; i += GM_THREADS) {
    if (gm_id(candidates, i) == result.token) shared.selection.digit = __float_as_uint(candidates.logits[i]);
  }
  __syncthreads();
  result.logit = __uint_as_float(shared.selection.digit);
  __syncthreads();
}

#endif
