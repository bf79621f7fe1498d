// What the host tells the sampler of a row, and what the sampler answers.
//
// The twin of src/sample/kernel/row.rs, field for field; `tests/kernels` compares sizes and
// offsets. Nothing here has the size of the vocabulary.
#ifndef GM_ROW_CUH
#define GM_ROW_CUH
#include "portable.cuh"

#define GM_MAX_EDITS 10
#define GM_MAX_STAGES 10
// No bit set, no history.
#define GM_NONE 0xffffffffu

// A change of one token's logit: an addition, or a ban when it is NaN.
struct GmEntry {
  uint32_t id;
  float change;
};

enum GmEditKind : uint32_t {
  GM_EDIT_LIST,        // entries [first, first + count), ids ascending
  GM_EDIT_ALLOW,       // bans what the bit set at word `first` doesn't hold
  GM_EDIT_REPETITION,  // value divides or multiplies
  GM_EDIT_FREQUENCY,   // value times the count is subtracted
  GM_EDIT_PRESENCE     // value is subtracted
};

struct GmEdit {
  uint32_t kind;
  uint32_t first;
  uint32_t count;
  float value;
};

enum GmStageKind : uint32_t {
  GM_STAGE_TEMPERATURE,
  GM_STAGE_TOP_K,
  GM_STAGE_TOP_P,
  GM_STAGE_MIN_P,
  GM_STAGE_TYPICAL,
  GM_STAGE_EPSILON,
  GM_STAGE_ETA,
  GM_STAGE_TOP_N_SIGMA,
  GM_STAGE_XTC  // its coin has fallen; value is the threshold
};

// A truncation, or a temperature behind one.
struct GmStage {
  uint32_t kind;
  uint32_t count;  // k of top-k, else the number of tokens that stay at least
  double value;
};

enum GmDecoding : uint32_t { GM_GREEDY, GM_SAMPLED };
enum GmAction : uint32_t { GM_KEEP, GM_BIAS, GM_RACE };
enum GmMembership : uint32_t { GM_MEMBERS_CHACHA8, GM_MEMBERS_BITS };
enum GmGate : uint32_t { GM_ALWAYS, GM_ENTROPY_ABOVE, GM_MAX_PROBABILITY_AT_MOST };

// How a row is computed; the result is the same.
enum GmPath : uint32_t {
  GM_PATH_OPEN,   // nothing is truncated: all blocks of the row draw
  GM_PATH_LIST,   // the best tokens are listed, one block truncates and draws
  GM_PATH_DENSE   // one block works on the whole row
};

// `flags`: which sums over all tokens the first truncation needs.
#define GM_NEEDS_TOTAL 1u
#define GM_NEEDS_SIGMA 2u

struct GmRow {
  uint64_t history;  // device address of the row's GmHistory words, 0 without penalties
  double gate_value;
  uint32_t draw_key[8];
  uint32_t mark_key[8];
  uint32_t path;
  uint32_t flags;
  uint32_t decoding;
  uint32_t action;
  uint32_t gate;
  uint32_t membership;
  uint32_t members;       // word offset of a bit set
  uint32_t never_marked;  // word offset of a bit set
  uint32_t threshold;     // green: word < threshold
  uint32_t scope;         // so many of the best may be green; 0: all
  float delta;
  float temperature;      // directly behind the edits
  uint32_t edits;
  uint32_t stages;
  GmEdit edit[GM_MAX_EDITS];
  GmStage stage[GM_MAX_STAGES];
};

enum GmStatus : uint32_t { GM_OK, GM_NON_FINITE, GM_EMPTY };

// Sums are relative to the largest logit of their time; the host turns them into logarithms.
struct GmResult {
  uint32_t status;
  uint32_t token;
  uint32_t survivors;
  uint32_t nan;
  uint32_t infinite;
  uint32_t culprit;  // 0: the model, else 1 + the index of the edit that emptied the row
  uint32_t marked;   // whether a bias was applied
  uint32_t path;     // the path that was taken
  float raw_logit;
  float unmarked_logit;
  float logit;
  float raw_max;
  float unmarked_max;
  float max;
  uint64_t raw_total;
  uint64_t raw_surprisal;
  uint64_t unmarked_total;
  uint64_t unmarked_surprisal;
  uint64_t green;
  uint64_t total;
};

// The history of a row with penalties, as words: a head of 4, `seen` of (vocab + 31) / 32,
// `counts` of 2 * vocab, the window's ids. A token has two counts: of the scope of the
// repetition penalty and of that of the others. It is seen when one of them is above 0.
#define GM_HISTORY_WINDOW 0u  // ids that count; 0: all
#define GM_HISTORY_LENGTH 1u  // ids in the window
#define GM_HISTORY_OLDEST 2u  // place in the window of the oldest id
#define GM_HISTORY_HEAD 4u

struct GmHistory {
  uint32_t *head;
  uint32_t *seen;
  uint32_t *counts;
  uint32_t *window;
};

GM_DEVICE GmHistory gm_history(uint64_t address, uint32_t vocab) {
  GmHistory history;
  history.head = (uint32_t *)address;
  history.seen = history.head + GM_HISTORY_HEAD;
  history.counts = history.seen + (vocab + 31u) / 32u;
  history.window = history.counts + 2u * (size_t)vocab;
  return history;
}

GM_DEVICE bool gm_holds(const uint32_t *set, uint32_t id) { return set[id / 32u] >> (id % 32u) & 1u; }

#endif
