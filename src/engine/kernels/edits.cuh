// From the model's logits to those that the truncations see: penalties, biases, bans and the
// temperature behind them.
//
// Few tokens of a row are touched by an edit. A bit per token of a chunk says which; only those
// take the slow way through the row's edits.
#ifndef GM_EDITS_CUH
#define GM_EDITS_CUH
#include "block.cuh"
#include "row.cuh"

// Tokens of a chunk and of a thread: fixed, never a function of the batch. A thread's 16 tokens
// are one block of the mark's key stream and 64 bytes of logits.
#define GM_CHUNK 4096u
#define GM_PER_THREAD 16u
#define GM_CHUNK_WORDS (GM_CHUNK / 32u)

// What a row is edited with.
struct GmInputs {
  const float *logits;  // of this row
  const GmEntry *entries;
  const uint32_t *bits;
  uint32_t vocab;
  bool aligned;         // rows start at multiples of 16 bytes
};

GM_DEVICE float gm_divided(float logit, float temperature) {
  if (logit == GM_NEGATIVE_INFINITY || temperature == 1.0f) return logit;
  return gm_finite(__fdiv_rn(logit, temperature));
}

// The place of the first entry of [first, end) whose id is not below `id`.
GM_DEVICE uint32_t gm_lower_bound(const GmEntry *entries, uint32_t first, uint32_t end, uint32_t id) {
  while (first < end) {
    const uint32_t middle = first + (end - first) / 2u;
    if (entries[middle].id < id) first = middle + 1u;
    else end = middle;
  }
  return first;
}

// A logit after the row's edits. `culprit` becomes 1 + the index of the edit that banned the
// token, if one did.
GM_CALLED float gm_edited(const GmRow &row, const GmInputs &in, uint32_t id, float logit, uint32_t &culprit) {
  const GmHistory history = gm_history(row.history, in.vocab);
  for (uint32_t index = 0; index < row.edits && logit > GM_NEGATIVE_INFINITY; index++) {
    const GmEdit &edit = row.edit[index];
    bool banned = false;
    if (edit.kind == GM_EDIT_LIST) {
      const uint32_t end = edit.first + edit.count;
      const uint32_t place = gm_lower_bound(in.entries, edit.first, end, id);
      if (place < end && in.entries[place].id == id) {
        const float change = in.entries[place].change;
        banned = change != change;
        if (!banned) logit = gm_finite(__fadd_rn(logit, change));
      }
    } else if (edit.kind == GM_EDIT_ALLOW) {
      banned = !gm_holds(in.bits + edit.first, id);
    } else if (edit.kind == GM_EDIT_REPETITION) {
      if (history.counts[2u * (size_t)id] > 0u) {
        const float changed =
            logit < 0.0f ? __fmul_rn(logit, edit.value) : __fdiv_rn(logit, edit.value);
        logit = gm_finite(changed);
      }
    } else {
      const uint32_t count = history.counts[2u * (size_t)id + 1u];
      if (count > 0u) {
        const float times = edit.kind == GM_EDIT_FREQUENCY ? (float)count : 1.0f;
        logit = gm_finite(__fsub_rn(logit, __fmul_rn(times, edit.value)));
      }
    }
    if (banned) {
      logit = GM_NEGATIVE_INFINITY;
      culprit = index + 1u;
    }
  }
  return logit;
}

// Marks the tokens of a chunk that an edit may touch. All threads call it; a barrier follows.
GM_CALLED void gm_mark_touched(const GmRow &row, const GmInputs &in, uint32_t chunk, uint32_t *touched) {
  if (row.edits == 0u) return;
  const uint32_t first = chunk * GM_CHUNK;
  const uint32_t words = (in.vocab + 31u) / 32u;
  const uint32_t word = first / 32u + threadIdx.x;
  if (threadIdx.x < GM_CHUNK_WORDS) {
    uint32_t marks = 0u;
    if (word < words) {
      if (row.history != 0u) marks = gm_history(row.history, in.vocab).seen[word];
      for (uint32_t index = 0; index < row.edits; index++) {
        if (row.edit[index].kind == GM_EDIT_ALLOW) marks |= ~in.bits[row.edit[index].first + word];
      }
    }
    touched[threadIdx.x] = marks;
  }
  __syncthreads();
  for (uint32_t index = 0; index < row.edits; index++) {
    const GmEdit &edit = row.edit[index];
    if (edit.kind != GM_EDIT_LIST) continue;
    const uint32_t end = edit.first + edit.count;
    const uint32_t from = gm_lower_bound(in.entries, edit.first, end, first);
    const uint32_t to = gm_lower_bound(in.entries, from, end, first + GM_CHUNK);
    for (uint32_t place = from + threadIdx.x; place < to; place += GM_THREADS) {
      const uint32_t offset = in.entries[place].id - first;
      atomicOr(&touched[offset / 32u], 1u << (offset % 32u));
    }
  }
  __syncthreads();
}

// The logits of a thread's tokens; negative infinity behind the vocabulary.
GM_DEVICE void gm_load(const GmInputs &in, uint32_t first, float (&raw)[GM_PER_THREAD]) {
#ifdef GREENMARK_PLANT_OVERRUN
  if (first < in.vocab) {
#else
  if (in.aligned && first + GM_PER_THREAD <= in.vocab) {
#endif
    const float4 *quads = (const float4 *)(in.logits + first);
#pragma unroll
    for (uint32_t quad = 0; quad < GM_PER_THREAD / 4u; quad++) {
      const float4 values = quads[quad];
      raw[4u * quad] = values.x;
      raw[4u * quad + 1u] = values.y;
      raw[4u * quad + 2u] = values.z;
      raw[4u * quad + 3u] = values.w;
    }
  } else {
#pragma unroll
    for (uint32_t i = 0; i < GM_PER_THREAD; i++) {
      raw[i] = first + i < in.vocab ? in.logits[first + i] : GM_NEGATIVE_INFINITY;
    }
  }
}

// What the truncations see of a thread's tokens, after `gm_mark_touched` of its chunk.
GM_DEVICE void gm_process(const GmRow &row, const GmInputs &in, const uint32_t *touched, uint32_t first,
                          const float (&raw)[GM_PER_THREAD], float (&logits)[GM_PER_THREAD], uint32_t &culprit) {
  uint32_t marks = 0u;
  if (row.edits > 0u) {
    const uint32_t offset = first % GM_CHUNK;
    marks = touched[offset / 32u] >> (offset % 32u) & 0xffffu;
  }
#pragma unroll
  for (uint32_t i = 0; i < GM_PER_THREAD; i++) {
    float logit = raw[i];
    if ((marks >> i & 1u) && first + i < in.vocab) {
      uint32_t own = 0u;
      logit = gm_edited(row, in, first + i, logit, own);
      culprit = own > culprit ? own : culprit;
    }
    logits[i] = gm_divided(logit, row.temperature);
  }
}

// The same for one token, from anywhere.
GM_DEVICE float gm_processed(const GmRow &row, const GmInputs &in, uint32_t id) {
  uint32_t culprit = 0u;
  return gm_divided(gm_edited(row, in, id, in.logits[id], culprit), row.temperature);
}

#endif
