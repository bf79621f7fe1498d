// Barriers, shuffles, votes and reductions of a warp. Include through cuda_emulator.hpp.
#pragma once

#define EMULATOR_SITE emulator::Site site = {__builtin_FILE(), __builtin_LINE()}

inline void __syncthreads(EMULATOR_SITE) { emulator::block_barrier(site); }
inline void __syncwarp(unsigned mask = emulator::all_lanes, EMULATOR_SITE) {
  emulator::exchange(emulator::Collective::sync, mask, 0, site);
}

namespace emulator {

template <class T>
inline uint64_t to_word(T value) {
  static_assert(sizeof(T) <= sizeof(uint64_t), "a lane exchanges at most 64 bits");
  uint64_t word = 0;
  memcpy(&word, &value, sizeof value);
  return word;
}
template <class T>
inline T from_word(uint64_t word) {
  T value;
  memcpy(&value, &word, sizeof value);
  return value;
}
inline unsigned lane() { return running.linear_thread % warp_lanes; }

// The value that lane `source` gave. A lane that takes no part has none to give.
template <class T>
inline T shuffle(unsigned mask, T value, unsigned source, Site site) {
  const uint64_t *words = exchange(Collective::shuffle, mask, to_word(value), site);
  if (!(mask >> source & 1))
    fail("%s:%d: lane %u reads lane %u, which is not in the mask %08x", site.file, site.line, lane(), source, mask);
  return from_word<T>(words[source]);
}

// A shuffle of width w works within groups of w neighbours.
inline unsigned group_start(int width) { return lane() & ~(static_cast<unsigned>(width) - 1); }

template <class T, class Combine>
inline T reduce(unsigned mask, T value, Site site, Combine combine) {
  const uint64_t *words = exchange(Collective::reduce, mask, to_word(value), site);
  bool first = true;
  T result = value;
  for (unsigned source = 0; source < warp_lanes; source++) {
    if (!(mask >> source & 1)) continue;
    T next = from_word<T>(words[source]);
    result = first ? next : combine(result, next);
    first = false;
  }
  return result;
}

}  // namespace emulator

template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, EMULATOR_SITE) {
  unsigned within = static_cast<unsigned>(source) & (static_cast<unsigned>(width) - 1);
  return emulator::shuffle(mask, value, emulator::group_start(width) + within, site);
}
// Beyond the end of its group a lane keeps its own value: so for the three relative forms.
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32, EMULATOR_SITE) {
  unsigned source = emulator::lane() ^ static_cast<unsigned>(flip);
  unsigned end = emulator::group_start(width) + static_cast<unsigned>(width);
  return emulator::shuffle(mask, value, source < end ? source : emulator::lane(), site);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32, EMULATOR_SITE) {
  unsigned source = emulator::lane() + distance;
  unsigned end = emulator::group_start(width) + static_cast<unsigned>(width);
  return emulator::shuffle(mask, value, source < end ? source : emulator::lane(), site);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32, EMULATOR_SITE) {
  unsigned within = emulator::lane() - emulator::group_start(width);
  return emulator::shuffle(mask, value, within >= distance ? emulator::lane() - distance : emulator::lane(), site);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, EMULATOR_SITE) {
  const uint64_t *words = emulator::exchange(emulator::Collective::vote, mask, predicate != 0, site);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < emulator::warp_lanes; lane++)
    if ((mask >> lane & 1) && words[lane]) votes |= 1u << lane;
  return votes;
}
inline int __any_sync(unsigned mask, int predicate, EMULATOR_SITE) { return __ballot_sync(mask, predicate, site) != 0; }
inline int __all_sync(unsigned mask, int predicate, EMULATOR_SITE) {
  return __ballot_sync(mask, predicate, site) == mask;
}

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, EMULATOR_SITE) {
  const uint64_t word = emulator::to_word(value);
  const uint64_t *words = emulator::exchange(emulator::Collective::match, mask, word, site);
  unsigned equal = 0;
  for (unsigned lane = 0; lane < emulator::warp_lanes; lane++)
    if ((mask >> lane & 1) && words[lane] == word) equal |= 1u << lane;
  return equal;
}

inline unsigned __reduce_add_sync(unsigned mask, unsigned value, EMULATOR_SITE) {
  return emulator::reduce(mask, value, site, [](unsigned a, unsigned b) { return a + b; });
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value, EMULATOR_SITE) {
  return emulator::reduce(mask, value, site, [](unsigned a, unsigned b) { return a < b ? a : b; });
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value, EMULATOR_SITE) {
  return emulator::reduce(mask, value, site, [](unsigned a, unsigned b) { return a > b ? a : b; });
}
inline int __reduce_add_sync(unsigned mask, int value, EMULATOR_SITE) {
  return static_cast<int>(__reduce_add_sync(mask, static_cast<unsigned>(value), site));
}
inline int __reduce_min_sync(unsigned mask, int value, EMULATOR_SITE) {
  return emulator::reduce(mask, value, site, [](int a, int b) { return a < b ? a : b; });
}
inline int __reduce_max_sync(unsigned mask, int value, EMULATOR_SITE) {
  return emulator::reduce(mask, value, site, [](int a, int b) { return a > b ? a : b; });
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value, EMULATOR_SITE) {
  return emulator::reduce(mask, value, site, [](unsigned a, unsigned b) { return a & b; });
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value, EMULATOR_SITE) {
  return emulator::reduce(mask, value, site, [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, EMULATOR_SITE) {
  return emulator::reduce(mask, value, site, [](unsigned a, unsigned b) { return a ^ b; });
}
