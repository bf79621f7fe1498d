// Stacks of fibers and the switch between them. Included by emulator.cpp alone.
#pragma once

#include <cstddef>

#include <sys/mman.h>

#include "sanitizers.hpp"
#include "scheduler.hpp"

#if !defined(__x86_64__) || !defined(__linux__)
#error "the emulator's context switch and stacks are written for Linux on x86-64"
#endif

// Saves the callee-saved registers on the stack, stores the stack pointer, and goes on with another stack.
extern "C" void emulator_switch_stacks(void **save, void *load);
__asm__(R"(
.text
.globl emulator_switch_stacks
.hidden emulator_switch_stacks
.type emulator_switch_stacks, @function
emulator_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulator_switch_stacks, .-emulator_switch_stacks
)");

namespace emulator {

constexpr unsigned saved_registers = 6;
constexpr size_t page_bytes = 4096;
// Sanitizers widen frames; untouched pages cost nothing.
constexpr size_t stack_bytes = 256 * 1024;

// Where a fiber or the scheduler itself goes on.
struct Context {
  void *stack_pointer = nullptr;
  History history;
  const void *stack_bottom = nullptr;
  size_t stack_size = 0;
  void *fake_stack = nullptr;
};

inline void switch_context(Context &from, Context &to, [[maybe_unused]] bool from_ends) {
#ifdef EMULATOR_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(from_ends ? nullptr : &from.fake_stack, to.stack_bottom, to.stack_size);
#endif
  to.history.enter();
  emulator_switch_stacks(&from.stack_pointer, to.stack_pointer);
#ifdef EMULATOR_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

// Memory that grows, and loses what it held when it does. Unlike the heap's, its end is no access in the eyes
// of ThreadSanitizer: kernels touch it without an edge to the thread that lets go of it.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;
  ~Mapping() { unmap(); }

  // Whether it had to grow.
  bool reserve(size_t bytes) {
    if (bytes <= bytes_) return false;
    unmap();
    void *area = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED) fail("no memory for %zu bytes", bytes);
    start_ = static_cast<char *>(area);
    bytes_ = bytes;
    return true;
  }
  char *start() const { return start_; }

 private:
  void unmap() {
    if (start_) munmap(start_, bytes_);
  }
  char *start_ = nullptr;
  size_t bytes_ = 0;
};

// The stacks of an OS thread's fibers, each above a page that nobody may touch.
class Stacks {
 public:
  void reserve(unsigned count) {
    if (!mapping_.reserve(stride * count)) return;
    for (unsigned i = 0; i < count; i++) mprotect(mapping_.start() + stride * i, page_bytes, PROT_NONE);
  }
  char *bottom(unsigned index) const { return mapping_.start() + stride * index + page_bytes; }
  // Stacks start at different places of a page: at the same one they would evict each other from the cache.
  char *top(unsigned index) const { return bottom(index) + stack_bytes - (index * 832 % page_bytes & ~size_t{63}); }

 private:
  static constexpr size_t stride = stack_bytes + page_bytes;
  Mapping mapping_;
};

}  // namespace emulator
