// The sampler: two launches for a batch of rows, from logits to tokens.
//
// `gm_scan` reads every logit once: maxima, counts and a histogram from which the last block of
// a row chooses how many of its best tokens are listed. `gm_weigh` reads them again, now that
// the maxima are known: probability masses are fixed-point numbers relative to the row's largest
// logit, so exact sums need a second pass (out of the L2 cache for batches that fit it). It lists
// the best tokens or, where nothing is truncated, draws; the last block of a row truncates the
// list and finishes the row. A row for which the list is not enough, because it is flat or its
// members need every token, is worked on as a whole by that block: slower, same result.
//
// The work is split by the vocabulary alone: blocks of 256 threads, 16 tokens a thread, a grid of
// (ceil(vocab / 4096), rows). All sums are of integers, ties go to the smaller id, noise belongs
// to a token: no result depends on the batch, the row's place in it or the order of blocks.
// Only the last block of a row waits for others, by counting them, so no launch can deadlock.
#ifndef GM_SAMPLER_CUH
#define GM_SAMPLER_CUH
#include "finish.cuh"
#include "state.cuh"

// From which logit on a token of a chunk may be the chunk's best after the mark: within delta of
// the chunk's best before it, and a little more than rounding can move a sum.
GM_DEVICE float gm_within_reach(const GmRow &row, uint32_t chunk_max) {
  const double best = (double)gm_number_of_key(chunk_max);
  const double reach = row.delta < 0.0f ? -(double)row.delta : (double)row.delta;
  return __double2float_rd(best - reach - 1e-6 * ((best < 0.0 ? -best : best) + reach));
}

// The largest logit after the mark among those of a thread's tokens that are `near` the best.
// Called apart, so that it doesn't hold the thread's logits in memory: it reads few again.
GM_CALLED uint32_t gm_marked_max(const GmRow &row, const GmInputs &in, uint32_t first, uint32_t near) {
  uint32_t key = 0u;
  while (near != 0u) {
    const uint32_t id = first + (uint32_t)__ffs((int)near) - 1u;
    near &= near - 1u;
    const bool green = gm_markable(row, in.bits, id) && gm_member(row, in.bits, id);
    const uint32_t own = gm_rank_key(gm_biased(row, gm_processed(row, in, id), green));
    key = own > key ? own : key;
  }
  return key;
}

// Chooses the floor of a row's list: the lowest place of the histogram such that it and all above
// it hold at most GM_LIST tokens. Clears the histogram.
GM_CALLED void gm_choose_floor(GmReduction &reduction, GmState *state, uint32_t *histogram) {
  const uint32_t width = GM_HISTOGRAM / GM_THREADS;
  // Thread 0 has the highest places.
  const uint32_t top = GM_HISTOGRAM - threadIdx.x * width;
  uint64_t own = 0;
  for (uint32_t i = 1; i <= width; i++) own += gm_fresh(histogram + (top - i));
  uint64_t above = gm_block_scan(reduction, own) - own;
  for (uint32_t i = 1; i <= width; i++) {
    const uint32_t count = histogram[top - i];
    histogram[top - i] = 0u;
    // The first place that no longer fits is unique, and the floor stands above it.
    if (above <= GM_LIST && above + count > GM_LIST) state->floor = (top - i + 1u) << GM_HISTOGRAM_SHIFT;
    above += count;
  }
}

extern "C" __global__ void __launch_bounds__(256)
gm_scan(const float *logits, const GmRow *rows, const GmEntry *entries, const uint32_t *bits, GmState *states,
        uint32_t *histograms, uint32_t vocab, uint32_t stride) {
  __shared__ GmReduction reduction;
  __shared__ uint32_t touched[GM_CHUNK_WORDS];
  __shared__ uint32_t histogram[GM_HISTOGRAM];
  __shared__ uint32_t last;
  const GmRow &row = rows[blockIdx.y];
  const GmInputs in = gm_inputs(logits, entries, bits, vocab, stride);
  GmState *state = states + blockIdx.y;
  const uint32_t first = blockIdx.x * GM_CHUNK + threadIdx.x * GM_PER_THREAD;
  const bool lists = row.path == GM_PATH_LIST;
  if (lists) {
    for (uint32_t i = threadIdx.x; i < GM_HISTOGRAM; i += GM_THREADS) histogram[i] = 0u;
    __syncthreads();
  }
  gm_mark_touched(row, in, blockIdx.x, touched);
  float raw[GM_PER_THREAD];
  float values[GM_PER_THREAD];
  uint32_t culprit = 0u;
  gm_load(in, first, raw);
  gm_process(row, in, touched, first, raw, values, culprit);

  uint32_t nan = 0u, infinite = 0u, live = 0u, raw_max = 0u, max = 0u, min = 0u;
#pragma unroll
  for (uint32_t i = 0; i < GM_PER_THREAD; i++) {
    nan += raw[i] != raw[i];
    infinite += raw[i] == -GM_NEGATIVE_INFINITY;
    const uint32_t raw_key = gm_rank_key(raw[i]);
    const uint32_t key = gm_rank_key(values[i]);
    raw_max = raw_key > raw_max ? raw_key : raw_max;
    if (values[i] > GM_NEGATIVE_INFINITY) {
      live += 1u;
      max = key > max ? key : max;
      min = ~key > min ? ~key : min;
      if (lists) atomicAdd(&histogram[key >> GM_HISTOGRAM_SHIFT], 1u);
    }
  }
  // Counts of 4,096 tokens fit 16 bits each.
  const uint64_t counts =
      gm_block_sum(reduction, (uint64_t)nan | (uint64_t)infinite << 16 | (uint64_t)live << 32);
  raw_max = gm_block_max(reduction, raw_max);
  max = gm_block_max(reduction, max);
  min = gm_block_max(reduction, min);
  if (row.edits > 0u) culprit = gm_block_max(reduction, culprit);
  uint32_t marked_max = 0u;
  if (row.path == GM_PATH_OPEN && row.action == GM_BIAS && max > 0u) {
    const float reach = gm_within_reach(row, max);
    uint32_t near = 0u;
#pragma unroll
    for (uint32_t i = 0; i < GM_PER_THREAD; i++) {
      if (values[i] > GM_NEGATIVE_INFINITY && values[i] >= reach) near |= 1u << i;
    }
    marked_max = gm_block_max(reduction, gm_marked_max(row, in, first, near));
  }
  if (threadIdx.x == 0u) {
    if (counts & 0xffffu) atomicAdd(&state->nan, (uint32_t)counts & 0xffffu);
    if (counts >> 16 & 0xffffu) atomicAdd(&state->infinite, (uint32_t)(counts >> 16) & 0xffffu);
    atomicAdd(&state->live, (uint32_t)(counts >> 32));
    atomicMax(&state->raw_max, raw_max);
    atomicMax(&state->max, max);
    atomicMax(&state->min, min);
    atomicMax(&state->marked_max, marked_max);
    if (culprit > 0u) atomicMax(&state->culprit, culprit);
  }
  if (!lists) return;
  uint32_t *merged = histograms + (size_t)blockIdx.y * GM_HISTOGRAM;
  for (uint32_t i = threadIdx.x; i < GM_HISTOGRAM; i += GM_THREADS) {
    if (histogram[i] > 0u) atomicAdd(&merged[i], histogram[i]);
  }
  if (gm_arrive(&state->scanned, last)) gm_choose_floor(reduction, state, merged);
}

// A thread's part of the sums of `gm_weigh`.
struct GmWeights {
  uint64_t raw_total;
  uint64_t raw_surprisal;
  uint64_t total;
  uint64_t surprisal;
  uint64_t green;
  uint64_t marked_total;
  uint32_t rest_max;
  GmSpread spread;
  GmRunner runner;
};

// The 16 tokens of a thread of a row that nothing truncates: masses, mark and draw.
GM_DEVICE void gm_weigh_open(const GmRow &row, const GmInputs &in, const GmState &state, uint32_t first,
                             const float (&logits)[GM_PER_THREAD], GmWeights &weights) {
  const float max = gm_number_of_key(state.max);
  const bool biased = row.action == GM_BIAS;
  const float marked_max = biased ? gm_number_of_key(state.marked_max) : max;
  uint32_t green = 0u;
  if (biased) {
    if (row.membership == GM_MEMBERS_CHACHA8) {
      uint32_t words[16];
      gm_chacha8(row.mark_key, first / GM_PER_THREAD, words);
#pragma unroll
      for (uint32_t i = 0; i < GM_PER_THREAD; i++) green |= (uint32_t)(words[i] < row.threshold) << i;
    } else {
      green = in.bits[row.members + first / 32u] >> (first % 32u) & 0xffffu;
    }
    if (row.never_marked != GM_NONE) {
      green &= ~(in.bits[row.never_marked + first / 32u] >> (first % 32u));
    }
  }
  const uint32_t *noise_key = row.action == GM_RACE ? row.mark_key : row.draw_key;
#pragma unroll
  for (uint32_t half = 0; half < 2u; half++) {
    uint32_t noise[16];
    if (row.decoding == GM_SAMPLED) gm_chacha8(noise_key, first / 8u + half, noise);
#pragma unroll
    for (uint32_t i = 0; i < 8u; i++) {
      const uint32_t place = 8u * half + i;
      const float logit = logits[place];
      if (!(logit > GM_NEGATIVE_INFINITY)) continue;
      const uint32_t id = first + place;
      uint64_t mass = gm_weighed(__fsub_rn(logit, max), weights.total, weights.surprisal);
      float marked = logit;
      if (biased) {
        const bool is_green = green >> place & 1u;
        if (is_green) weights.green += mass;
        marked = gm_biased(row, logit, is_green);
        mass = gm_mass(__fsub_rn(marked, marked_max));
        weights.marked_total += mass;
      }
      if (row.decoding == GM_GREEDY) {
        gm_run_greedy(weights.runner, id, marked);
        continue;
      }
      uint64_t bits = (uint64_t)noise[2u * i] | (uint64_t)noise[2u * i + 1u] << 32;
      if (row.action == GM_RACE && !gm_markable(row, in.bits, id)) bits = gm_word_pair(row.draw_key, id);
      gm_run(weights.runner, id, marked, marked_max, mass, bits);
    }
  }
}

// The 16 tokens of a thread of a row that is truncated: the best are listed, the rest weighed as
// far as the first truncation asks for it. All threads call it.
GM_DEVICE void gm_weigh_listed(GmShared &shared, const GmRow &row, GmState *state, GmListed *list, uint32_t first,
                               const float (&logits)[GM_PER_THREAD], GmWeights &weights) {
  const float max = gm_number_of_key(state->max);
  const uint32_t floor = state->floor;
  const bool totals = row.flags & GM_NEEDS_TOTAL;
  const bool spreads = row.flags & GM_NEEDS_SIGMA;
  double unit = 0.0;
  if (spreads) unit = gm_sigma_unit((double)max - (double)gm_number_of_key(~state->min));
  uint32_t listed = 0u;
#pragma unroll
  for (uint32_t i = 0; i < GM_PER_THREAD; i++) {
    const float logit = logits[i];
    if (!(logit > GM_NEGATIVE_INFINITY)) continue;
    const uint32_t key = gm_rank_key(logit);
    if (key >= floor) listed |= 1u << i;
    else weights.rest_max = key > weights.rest_max ? key : weights.rest_max;
    if (totals) gm_weighed(__fsub_rn(logit, max), weights.total, weights.surprisal);
    if (spreads) gm_spread_add(weights.spread, max, logit, unit);
  }
  // A block asks once for room on the list; its order there means nothing.
  const uint32_t own = (uint32_t)__popc(listed);
  uint32_t place = (uint32_t)gm_block_scan(shared.reduction, own);
  if (threadIdx.x == GM_THREADS - 1u) {
    shared.selection.digit = place > 0u ? atomicAdd(&state->listed, place) : 0u;
  }
  __syncthreads();
  place += shared.selection.digit - own;
#pragma unroll
  for (uint32_t i = 0; i < GM_PER_THREAD; i++) {
    // No more are listed than there is room for, unless a row changed between the launches.
    if ((listed >> i & 1u) && place < GM_LIST) {
      list[place].id = first + i;
      list[place].logit = logits[i];
      place++;
    }
  }
}

GM_DEVICE void gm_add(GmReduction &reduction, uint64_t *place, uint64_t value) {
  value = gm_block_sum(reduction, value);
  if (threadIdx.x == 0u && value > 0) gm_atomic_add(place, value);
}

struct GmList {
  uint32_t ids[GM_LIST];
  float logits[GM_LIST];
};

// Truncates the list and finishes the row; `false` when the list is not enough.
GM_CALLED bool gm_finish_list(GmShared &shared, GmList &own, const GmRow &row, const GmInputs &in, GmState *state,
                              const GmListed *list, GmResult &result) {
  const uint32_t count = gm_fresh(&state->listed);
  if (count > GM_LIST) return false;
  for (uint32_t i = threadIdx.x; i < count; i += GM_THREADS) {
    own.ids[i] = gm_fresh(&list[i].id);
    own.logits[i] = __uint_as_float(gm_fresh((const uint32_t *)&list[i].logit));
  }
  __syncthreads();
  const GmCandidates candidates = {own.logits, own.ids, count};
  GmRest rest;
  rest.live = state->live - count;
  rest.flags = row.flags;
  rest.floor = state->floor;
  rest.min = gm_number_of_key(~state->min);
  // A mass grows with its logit, so the largest of the rest is that of its best token.
  rest.heaviest = gm_mass(__fsub_rn(gm_number_of_key(gm_fresh(&state->rest_max)), gm_number_of_key(state->max)));
  rest.whole.max = gm_number_of_key(state->max);
  rest.whole.live = state->live;
  rest.whole.total = gm_fresh(&state->total);
  rest.whole.surprisal = gm_fresh(&state->surprisal);
  rest.spread.sum = gm_fresh(&state->spread.sum);
  rest.spread.squares_low = gm_fresh(&state->spread.squares_low);
  rest.spread.squares_high = gm_fresh(&state->spread.squares_high);
  if (!gm_truncate(shared, row, candidates, rest)) return false;
  gm_finish(shared, row, in, candidates, result);
  return true;
}

// Works on the whole row; `dense` is room for it.
GM_CALLED void gm_finish_dense(GmShared &shared, uint32_t *touched, const GmRow &row, const GmInputs &in, float *dense,
                               GmResult &result) {
  for (uint32_t chunk = 0; chunk * GM_CHUNK < in.vocab; chunk++) {
    const uint32_t first = chunk * GM_CHUNK + threadIdx.x * GM_PER_THREAD;
    float raw[GM_PER_THREAD];
    float values[GM_PER_THREAD];
    uint32_t culprit = 0u;
    gm_mark_touched(row, in, chunk, touched);
    gm_load(in, first, raw);
    gm_process(row, in, touched, first, raw, values, culprit);
    for (uint32_t i = 0; i < GM_PER_THREAD && first + i < in.vocab; i++) dense[first + i] = values[i];
    __syncthreads();
  }
  const GmCandidates candidates = {dense, nullptr, in.vocab};
  GmRest rest = {};
  gm_truncate(shared, row, candidates, rest);
  gm_finish(shared, row, in, candidates, result);
}

// Finishes a row that nothing truncates, from the sums and the best token of each chunk.
GM_CALLED void gm_finish_open(GmShared &shared, const GmRow &row, const GmInputs &in, const GmState *state,
                              const GmBest *chunks, GmResult &result) {
  GmBest best = {0, GM_NONE, 0};
  for (uint32_t chunk = threadIdx.x; chunk < gridDim.x; chunk += GM_THREADS) {
    const uint64_t score = gm_fresh(&chunks[chunk].score);
    const uint32_t id = gm_fresh(&chunks[chunk].id);
    if (gm_beats(score, id, best)) {
      best.score = score;
      best.id = id;
    }
  }
  result.token = gm_block_best(shared.reduction, best).id;
  const bool biased = row.action == GM_BIAS;
  const float logit = gm_processed(row, in, result.token);
  const bool green = biased && gm_markable(row, in.bits, result.token) && gm_member(row, in.bits, result.token);
  result.logit = biased ? gm_biased(row, logit, green) : logit;
  result.survivors = state->live;
  result.marked = biased;
  result.unmarked_max = gm_number_of_key(state->max);
  result.unmarked_total = gm_fresh(&state->total);
  result.unmarked_surprisal = gm_fresh(&state->surprisal);
  result.green = gm_fresh(&state->green);
  result.max = biased ? gm_number_of_key(state->marked_max) : result.unmarked_max;
  result.total = biased ? gm_fresh(&state->marked_total) : result.unmarked_total;
}

// The logit before the mark of a token that was drawn: no truncation dropped it, so only the
// temperatures among the stages changed it.
GM_CALLED float gm_unmarked(const GmRow &row, const GmInputs &in, uint32_t id) {
  float logit = gm_processed(row, in, id);
  for (uint32_t index = 0; index < row.stages; index++) {
    if (row.stage[index].kind == GM_STAGE_TEMPERATURE) logit = gm_divided(logit, (float)row.stage[index].value);
  }
  return logit;
}

// Counts a token that was drawn, in the row's history.
GM_CALLED void gm_remember(const GmHistory &history, uint32_t token) {
  const uint32_t window = history.head[GM_HISTORY_WINDOW];
  if (window > 0u) {
    uint32_t place = history.head[GM_HISTORY_LENGTH];
    if (place == window) {
      place = history.head[GM_HISTORY_OLDEST];
      const uint32_t oldest = history.window[place];
      history.counts[2u * (size_t)oldest] -= 1u;
      history.counts[2u * (size_t)oldest + 1u] -= 1u;
      if (history.counts[2u * (size_t)oldest] == 0u) history.seen[oldest / 32u] &= ~(1u << (oldest % 32u));
      history.head[GM_HISTORY_OLDEST] = (place + 1u) % window;
    } else {
      history.head[GM_HISTORY_LENGTH] = place + 1u;
    }
    history.window[place] = token;
  }
  history.counts[2u * (size_t)token] += 1u;
  history.counts[2u * (size_t)token + 1u] += 1u;
  history.seen[token / 32u] |= 1u << (token % 32u);
}

// Two blocks share a multiprocessor's registers; left to itself the compiler fits three and spills.
extern "C" __global__ void __launch_bounds__(256, 2)
gm_weigh(const float *logits, const GmRow *rows, const GmEntry *entries, const uint32_t *bits, GmState *states,
         GmBest *chunk_best, GmListed *lists, float *dense, GmResult *results, uint32_t vocab, uint32_t stride) {
  __shared__ GmShared shared;
  __shared__ GmList own_list;
  __shared__ uint32_t touched[GM_CHUNK_WORDS];
  __shared__ uint32_t last;
  const GmRow &row = rows[blockIdx.y];
  const GmInputs in = gm_inputs(logits, entries, bits, vocab, stride);
  GmState *state = states + blockIdx.y;
  GmListed *list = lists + (size_t)blockIdx.y * GM_LIST;
  GmBest *best = chunk_best + (size_t)blockIdx.y * gridDim.x;
  const uint32_t first = blockIdx.x * GM_CHUNK + threadIdx.x * GM_PER_THREAD;
  const uint32_t bad = state->nan + state->infinite;
  const uint32_t live = state->live;
  const float raw_max = gm_number_of_key(state->raw_max);
  if (bad == 0u && live > 0u) {
    GmWeights weights = {};
    weights.runner = gm_runner();
    float raw[GM_PER_THREAD];
    float values[GM_PER_THREAD];
    uint32_t culprit = 0u;
    gm_mark_touched(row, in, blockIdx.x, touched);
    gm_load(in, first, raw);
    gm_process(row, in, touched, first, raw, values, culprit);
    // Where nothing changed the model's logits, one weighing serves both distributions.
    const bool weighs = row.path == GM_PATH_OPEN || (row.path == GM_PATH_LIST && (row.flags & GM_NEEDS_TOTAL));
    const bool once = weighs && row.edits == 0u && row.temperature == 1.0f;
    if (!once) {
#pragma unroll
      for (uint32_t i = 0; i < GM_PER_THREAD; i++) {
        gm_weighed(__fsub_rn(raw[i], raw_max), weights.raw_total, weights.raw_surprisal);
      }
    }
    if (row.path == GM_PATH_OPEN && first < vocab) gm_weigh_open(row, in, *state, first, values, weights);
    if (row.path == GM_PATH_LIST) gm_weigh_listed(shared, row, state, list, first, values, weights);
    if (once) {
      weights.raw_total = weights.total;
      weights.raw_surprisal = weights.surprisal;
    }
    gm_add(shared.reduction, &state->raw_total, weights.raw_total);
    gm_add(shared.reduction, &state->raw_surprisal, weights.raw_surprisal);
    if (weighs) {
      gm_add(shared.reduction, &state->total, weights.total);
      gm_add(shared.reduction, &state->surprisal, weights.surprisal);
    }
    if (row.flags & GM_NEEDS_TOTAL) {
      const uint32_t rest_max = gm_block_max(shared.reduction, weights.rest_max);
      if (threadIdx.x == 0u) atomicMax(&state->rest_max, rest_max);
    }
    if (row.flags & GM_NEEDS_SIGMA) {
      gm_add(shared.reduction, &state->spread.sum, weights.spread.sum);
      gm_add(shared.reduction, &state->spread.squares_low, weights.spread.squares_low);
      gm_add(shared.reduction, &state->spread.squares_high, weights.spread.squares_high);
    }
    if (row.path == GM_PATH_OPEN) {
      gm_add(shared.reduction, &state->green, weights.green);
      gm_add(shared.reduction, &state->marked_total, weights.marked_total);
      const GmBest winner = gm_block_best(shared.reduction, weights.runner.best);
      if (threadIdx.x == 0u) best[blockIdx.x] = winner;
    }
  }
  if (!gm_arrive(&state->weighed, last)) return;

  // One block is left of the row.
  GmResult result = {};
  result.nan = state->nan;
  result.infinite = state->infinite;
  result.culprit = state->culprit;
  result.path = row.path;
  if (bad > 0u || live == 0u) {
    result.status = bad > 0u ? GM_NON_FINITE : GM_EMPTY;
  } else {
    result.raw_max = raw_max;
    result.raw_total = gm_fresh(&state->raw_total);
    result.raw_surprisal = gm_fresh(&state->raw_surprisal);
    if (row.path == GM_PATH_OPEN) {
      gm_finish_open(shared, row, in, state, best, result);
    } else if (row.path == GM_PATH_DENSE || !gm_finish_list(shared, own_list, row, in, state, list, result)) {
      result.path = GM_PATH_DENSE;
      gm_finish_dense(shared, touched, row, in, dense + (size_t)blockIdx.y * vocab, result);
    }
    result.raw_logit = in.logits[result.token];
    result.unmarked_logit = gm_unmarked(row, in, result.token);
  }
  __syncthreads();
  if (threadIdx.x == 0u) {
    results[blockIdx.y] = result;
    if (row.history != 0u && result.status == GM_OK) gm_remember(gm_history(row.history, vocab), result.token);
    const GmState clear = {};
    *state = clear;
  }
}

// Counts the ids of a prompt in a new history, whose words are zero: all of them for the
// repetition penalty, or with a window its last ids for every penalty. One block.
extern "C" __global__ void __launch_bounds__(256)
gm_begin(uint32_t *words, const uint32_t *ids, uint32_t count, uint32_t window, uint32_t vocab) {
  const GmHistory history = gm_history((uint64_t)words, vocab);
  const uint32_t from = window > 0u && count > window ? count - window : 0u;
  for (uint32_t i = from + threadIdx.x; i < count; i += GM_THREADS) {
    const uint32_t id = ids[i];
    atomicAdd(&history.counts[2u * (size_t)id], 1u);
    if (window > 0u) {
      atomicAdd(&history.counts[2u * (size_t)id + 1u], 1u);
      history.window[i - from] = id;
    }
    atomicOr(&history.seen[id / 32u], 1u << (id % 32u));
  }
  if (threadIdx.x == 0u) {
    history.head[GM_HISTORY_WINDOW] = window;
    history.head[GM_HISTORY_LENGTH] = window > 0u ? count - from : 0u;
  }
}

#endif
