// Atomic operations and fences. Include through cuda_emulator.hpp.
//
// CUDA's atomics order nothing but themselves; a fence before the writer's and one after the reader's is
// what makes data visible with them. Under ThreadSanitizer they are relaxed here too and only a fence (or
// a barrier) makes an edge, so that a missing __threadfence() is a reported race. Without the sanitizer
// they are sequentially consistent, because blocks really run on several OS threads.
#pragma once

namespace emulator {

#ifdef EMULATOR_THREAD_SANITIZER
constexpr int atomic_order = __ATOMIC_RELAXED;
#else
constexpr int atomic_order = __ATOMIC_SEQ_CST;
#endif

// A fence after an atomic operation of the same thread, or of one before a barrier, sees all that was written
// before earlier fences. That is wider than on a GPU, where both must have touched the same atomic.
void fence();
void note_atomic();

// Only the sanitizer's fences ask for it.
inline void count_as_observed() {
#ifdef EMULATOR_THREAD_SANITIZER
  note_atomic();
#endif
}

// The parameter's type comes from the pointer alone, so that a literal of another type is accepted.
template <class T>
struct Same {
  using type = T;
};
template <class T>
using SameAs = typename Same<T>::type;

// Replaces `*place` by `change(old)`; the old value. Works for floats, which have no fetch-and-add here.
template <class T, class Change>
inline T update(T *place, Change change) {
  T old;
  count_as_observed();
  __atomic_load(place, &old, atomic_order);
  for (;;) {
    T next = change(old);
    if (__atomic_compare_exchange(place, &old, &next, false, atomic_order, atomic_order)) return old;
  }
}

}  // namespace emulator

template <class T>
inline T atomicAdd(T *place, emulator::SameAs<T> value) {
  return emulator::update(place, [value](T old) { return static_cast<T>(old + value); });
}
template <class T>
inline T atomicSub(T *place, emulator::SameAs<T> value) {
  return emulator::update(place, [value](T old) { return static_cast<T>(old - value); });
}
template <class T>
inline T atomicMax(T *place, emulator::SameAs<T> value) {
  return emulator::update(place, [value](T old) { return old < value ? value : old; });
}
template <class T>
inline T atomicMin(T *place, emulator::SameAs<T> value) {
  return emulator::update(place, [value](T old) { return value < old ? value : old; });
}
template <class T>
inline T atomicOr(T *place, emulator::SameAs<T> value) {
  return emulator::update(place, [value](T old) { return static_cast<T>(old | value); });
}
template <class T>
inline T atomicAnd(T *place, emulator::SameAs<T> value) {
  return emulator::update(place, [value](T old) { return static_cast<T>(old & value); });
}
template <class T>
inline T atomicXor(T *place, emulator::SameAs<T> value) {
  return emulator::update(place, [value](T old) { return static_cast<T>(old ^ value); });
}
template <class T>
inline T atomicExch(T *place, emulator::SameAs<T> value) {
  return emulator::update(place, [value](T) { return value; });
}
// Counts up to `limit` and starts again at 0.
inline unsigned atomicInc(unsigned *place, unsigned limit) {
  return emulator::update(place, [limit](unsigned old) { return old >= limit ? 0u : old + 1; });
}
template <class T>
inline T atomicCAS(T *place, emulator::SameAs<T> expected, emulator::SameAs<T> value) {
  emulator::count_as_observed();
  __atomic_compare_exchange(place, &expected, &value, false, emulator::atomic_order, emulator::atomic_order);
  return expected;
}

inline void __threadfence() { emulator::fence(); }
inline void __threadfence_block() { emulator::fence(); }
