// Runs a kernel on the CPU: what a caller of a launch and the CUDA vocabulary need of the scheduler.
//
// Every CUDA thread is a fiber with its own stack. It runs until a barrier or a warp collective, where it
// yields to the scheduler, which lets a block or the lanes of a mask go on when all of them have arrived.
// A barrier that some threads never reach, a collective whose lanes never come, a lane outside its own
// mask: each is undefined on a GPU and ends the process here, with a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "sanitizers.hpp"

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct uint3 {
  unsigned x, y, z;
};

namespace emulator {

constexpr unsigned warp_lanes = 32;
constexpr unsigned max_block_threads = 1024;
constexpr unsigned all_lanes = 0xffffffffu;

// Runs `kernel` once per thread of the grid and returns when all blocks are done.
//
// `shared_bytes` is the dynamic shared memory of a block. `workers` OS threads run blocks at a time
// (always one under AddressSanitizer). With an `order_seed` other than 0 the blocks run in a random order
// and so do the warps and lanes of each between their barriers: a result must not depend on it.
// What kernel code of another launch does on the same OS thread is not visible to this one.
void launch(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &kernel, unsigned workers = 1,
            uint64_t order_seed = 0);

// The order in which `blocks` blocks start: a permutation of 0..blocks, the identity for seed 0.
std::vector<uint64_t> block_order(uint64_t blocks, uint64_t seed);

// The CUDA thread that the calling OS thread is running.
struct Running {
  uint3 thread_index;
  uint3 block_index;
  dim3 block_dim;
  dim3 grid_dim;
  unsigned linear_thread;      // x fastest, as warps are formed
  char *dynamic_shared;        // `shared_bytes` bytes, 128-aligned
};
// `__thread`, because `thread_local` would call an initialiser at every use.
extern __thread Running running;

enum class Collective : uint8_t { sync, shuffle, vote, reduce, match };

// Where in the kernel's source a thread waits.
struct Site {
  const char *file;
  int line;
};

// Waits for every thread of the block.
void block_barrier(Site site);

// Waits until every lane of `mask` called it with the same mask and kind; the words they gave, by lane.
// Valid until the caller waits again.
const uint64_t *exchange(Collective kind, unsigned mask, uint64_t word, Site site);

// Ends the process: the kernel did what is undefined on a GPU.
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace emulator
