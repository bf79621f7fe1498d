// What ThreadSanitizer and AddressSanitizer must be told about fibers. Without a sanitizer: nothing.
//
// Under ThreadSanitizer a CUDA thread is a fiber of its own, entered without a "happens before" edge.
// Edges then come from barriers, warp collectives and fences alone, and a missing one is reported each
// time, although a single OS thread runs all of them.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_THREAD__)
#define EMULATOR_THREAD_SANITIZER 1
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *address);
void __tsan_release(void *address);
}
#endif

#if defined(__SANITIZE_ADDRESS__)
#define EMULATOR_ADDRESS_SANITIZER 1
extern "C" {
void __sanitizer_start_switch_fiber(void **fake_stack, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *fake_stack, const void **old_bottom, size_t *old_size);
}
#endif

namespace emulator {

// What was done before `release(tag)` happens before what is done after a later `acquire(tag)`.
inline void release([[maybe_unused]] void *tag) {
#ifdef EMULATOR_THREAD_SANITIZER
  __tsan_release(tag);
#endif
}
inline void acquire([[maybe_unused]] void *tag) {
#ifdef EMULATOR_THREAD_SANITIZER
  __tsan_acquire(tag);
#endif
}

// A thread of execution as ThreadSanitizer sees it. It never runs by itself.
class History {
 public:
  void create() {
#ifdef EMULATOR_THREAD_SANITIZER
    fiber_ = __tsan_create_fiber(0);
#endif
  }
  void take_current() {
#ifdef EMULATOR_THREAD_SANITIZER
    fiber_ = __tsan_get_current_fiber();
#endif
  }
  void destroy() {
#ifdef EMULATOR_THREAD_SANITIZER
    __tsan_destroy_fiber(fiber_);
    fiber_ = nullptr;
#endif
  }
  void enter() {
#ifdef EMULATOR_THREAD_SANITIZER
    constexpr unsigned no_edge = 1;
    __tsan_switch_to_fiber(fiber_, no_edge);
#endif
  }

 private:
  [[maybe_unused]] void *fiber_ = nullptr;
};

}  // namespace emulator
