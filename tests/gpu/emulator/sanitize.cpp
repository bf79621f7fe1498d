// The sampler's kernels over rows that take every path, for ThreadSanitizer and
// AddressSanitizer: a missing barrier or an access outside a buffer is their report. It also
// fails when a schedule changes a result.
#ifndef GREENMARK_EMULATOR
#define GREENMARK_EMULATOR 1
#endif
#include "entry.cpp"

#include <cstdio>
#include <cstring>
#include <vector>

namespace {

// Two chunks; the last thread's tokens end inside its 16, so an overrun leaves the buffer.
constexpr uint32_t vocab = 4999;
constexpr uint32_t words = (vocab + 31) / 32;

uint64_t state = 1;
uint32_t random_word() {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(state >> 33);
}

GmRow basic(uint32_t path) {
  GmRow row = {};
  row.path = path;
  row.decoding = GM_SAMPLED;
  row.temperature = 1.0f;
  row.members = row.never_marked = GM_NONE;
  for (int i = 0; i < 8; i++) {
    row.draw_key[i] = random_word();
    row.mark_key[i] = random_word();
  }
  return row;
}

void mark(GmRow &row, uint32_t action) {
  row.action = action;
  row.threshold = 1u << 30;
  row.delta = 2.0f;
  row.never_marked = 0;
}

void stage(GmRow &row, uint32_t kind, uint32_t count, double value) {
  row.stage[row.stages].kind = kind;
  row.stage[row.stages].count = count;
  row.stage[row.stages].value = value;
  row.stages++;
}

void edit(GmRow &row, uint32_t kind, uint32_t first, uint32_t count, float value) {
  GmEdit &place = row.edit[row.edits++];
  place.kind = kind;
  place.first = first;
  place.count = count;
  place.value = value;
}

}  // namespace

int main() {
  std::vector<uint32_t> bits(2 * words);
  for (uint32_t &word : bits) word = random_word() | random_word();
  std::vector<GmEntry> entries;
  for (uint32_t id = 3; id < vocab; id += 97) entries.push_back({id, id % 2 ? 1.5f : __uint_as_float(0x7fc00000u)});
  std::vector<uint32_t> history(GM_HISTORY_HEAD + words + 2 * vocab + 8);
  const uint32_t prompt[] = {5, 5, 4998, 17, 4100, 5, 9, 17, 2, 40};
  gm_emulated_begin(history.data(), prompt, 10, 8, vocab);

  std::vector<GmRow> rows;
  rows.push_back(basic(GM_PATH_OPEN));
  rows.push_back(basic(GM_PATH_OPEN));
  mark(rows.back(), GM_BIAS);
  rows.push_back(basic(GM_PATH_OPEN));
  mark(rows.back(), GM_RACE);
  rows.push_back(basic(GM_PATH_OPEN));
  rows.back().decoding = GM_GREEDY;
  rows.push_back(basic(GM_PATH_LIST));
  mark(rows.back(), GM_BIAS);
  rows.back().temperature = 0.7f;
  edit(rows.back(), GM_EDIT_LIST, 0, (uint32_t)entries.size(), 0.0f);
  edit(rows.back(), GM_EDIT_ALLOW, words, 0, 0.0f);
  stage(rows.back(), GM_STAGE_TOP_K, 50, 0.0);
  stage(rows.back(), GM_STAGE_TOP_P, 2, 0.9);
  stage(rows.back(), GM_STAGE_TYPICAL, 1, 0.9);
  stage(rows.back(), GM_STAGE_XTC, 0, 0.01);
  rows.push_back(basic(GM_PATH_LIST));
  mark(rows.back(), GM_RACE);
  rows.back().history = (uint64_t)history.data();
  rows.back().flags = GM_NEEDS_TOTAL;
  edit(rows.back(), GM_EDIT_REPETITION, 0, 0, 1.3f);
  edit(rows.back(), GM_EDIT_FREQUENCY, 0, 0, 0.2f);
  edit(rows.back(), GM_EDIT_PRESENCE, 0, 0, 0.1f);
  stage(rows.back(), GM_STAGE_MIN_P, 3, 0.05);
  stage(rows.back(), GM_STAGE_TEMPERATURE, 0, 1.5);
  rows.push_back(basic(GM_PATH_LIST));
  rows.back().flags = GM_NEEDS_SIGMA;
  stage(rows.back(), GM_STAGE_TOP_N_SIGMA, 2, 1.0);
  stage(rows.back(), GM_STAGE_ETA, 1, 0.001);
  // Nearly nothing is cut, so the list is not enough.
  rows.push_back(basic(GM_PATH_LIST));
  mark(rows.back(), GM_BIAS);
  rows.back().scope = 40;
  stage(rows.back(), GM_STAGE_TOP_P, 1, 0.9999);
  rows.push_back(basic(GM_PATH_DENSE));
  mark(rows.back(), GM_BIAS);
  rows.back().gate = GM_ENTROPY_ABOVE;
  rows.back().gate_value = 1.0;
  // A row that fails.
  rows.push_back(basic(GM_PATH_LIST));
  stage(rows.back(), GM_STAGE_TOP_K, 5, 0.0);

  const uint32_t count = (uint32_t)rows.size();
  std::vector<float> logits((size_t)count * vocab);
  for (float &logit : logits) {
    float sum = 0.0f;
    for (int i = 0; i < 4; i++) sum += (float)(random_word() % 4096u) / 1024.0f - 2.0f;
    logit = sum;
  }
  logits[(size_t)(count - 1) * vocab + 7] = __uint_as_float(0x7fc00000u);

  std::vector<GmResult> expected;
  const struct { unsigned workers; uint64_t seed; } schedules[] = {{1, 0}, {2, 12345}};
  for (const auto &schedule : schedules) {
    // A history changes with every token, so each schedule starts from the same.
    std::vector<uint32_t> kept = history;
    std::vector<GmResult> results(count);
    if (gm_emulated_sample(logits.data(), rows.data(), entries.data(), bits.data(), count, vocab, vocab, results.data(),
                           schedule.workers, schedule.seed) != 0) {
      puts("the scratch memory was not left clean");
      return 1;
    }
    memcpy(history.data(), kept.data(), kept.size() * sizeof kept[0]);
    if (expected.empty()) expected = results;
    if (memcmp(expected.data(), results.data(), count * sizeof(GmResult)) != 0) {
      printf("workers %u, seed %llu: another result\n", schedule.workers, (unsigned long long)schedule.seed);
      return 1;
    }
  }
  for (uint32_t i = 0; i + 1 < count; i++) {
    if (expected[i].status != GM_OK || expected[i].survivors == 0 || expected[i].token >= vocab) return 1;
  }
  if (expected[count - 1].status != GM_NON_FINITE) return 1;
  printf("%u rows, 2 schedules: the same results\n", count);
  return 0;
}
