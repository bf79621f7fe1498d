// What ThreadSanitizer must say of the emulator: nothing of right kernels, and a race of each wrong one.
//
// tools/gpu-check builds it with -fsanitize=thread and runs `races NAME` for every name that `races` alone
// prints. One that starts with "right" must exit with 0, any other with the sanitizer's code, 66.
#include <cstdio>
#include <cstring>
#include <vector>

#include "cuda_emulator.hpp"

using emulator::launch;

namespace {

constexpr unsigned threads = 64;
std::vector<unsigned> memory(1024);

// Each thread passes a value to its neighbour, twice over the same memory. Three barriers are needed: the
// flags leave one out.
void pass_on(bool before_reading, bool before_writing_again) {
  __shared__ unsigned values[threads];
  const unsigned thread = threadIdx.x, neighbour = (thread + 33) % threads;
  values[thread] = thread;
  if (before_reading) __syncthreads();
  const unsigned got = values[neighbour];
  if (before_writing_again) __syncthreads();
  values[thread] = got + 1;
  __syncthreads();
  memory[blockIdx.x * threads + thread] = values[neighbour];
}

// The same between the lanes of a warp.
void pass_on_in_warp(bool synced) {
  __shared__ unsigned values[threads];
  values[threadIdx.x] = threadIdx.x;
  if (synced) __syncwarp();
  memory[threadIdx.x] = values[threadIdx.x ^ 1];
}

// A shuffle among some lanes orders those lanes only.
void shuffle_of_half(unsigned reader) {
  __shared__ unsigned value;
  const unsigned lane = threadIdx.x;
  if (lane == 0) value = 1;
  if (lane < 16) __shfl_sync(0x0000ffffu, lane, 0);
  if (lane == reader) memory[0] = value;
}

// The last block to arrive reads what the others wrote; right only with a fence on both sides.
void last_block(bool writer_fence, bool reader_fence) {
  __shared__ bool last;
  unsigned *parts = memory.data(), *arrived = memory.data() + 1000;
  parts[blockIdx.x * threads + threadIdx.x] = 1;
  if (writer_fence) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(arrived, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  if (reader_fence) __threadfence();
  unsigned sum = 0;
  for (unsigned block = 0; block < gridDim.x; block++) sum += parts[block * threads + threadIdx.x];
  memory[500 + threadIdx.x] = sum;
}

// Two launches after each other need nothing between them.
void two_launches() {
  launch(4, threads, 0, [] { memory[blockIdx.x * threads + threadIdx.x] = 1; }, 2);
  launch(4, threads, 0, [] { memory[(3 - blockIdx.x) * threads + threadIdx.x] += 1; }, 2);
}

struct Case {
  const char *name;
  void (*run)();
};
const Case cases[] = {
    {"right-barriers", [] { launch(3, threads, 0, [] { pass_on(true, true); }); }},
    {"right-barriers-two-workers", [] { launch(4, threads, 0, [] { pass_on(true, true); }, 2); }},
    {"right-barriers-shuffled", [] { launch(3, threads, 0, [] { pass_on(true, true); }, 1, 7); }},
    {"right-syncwarp", [] { launch(1, threads, 0, [] { pass_on_in_warp(true); }); }},
    {"right-shuffle", [] { launch(1, 32, 0, [] { shuffle_of_half(15); }); }},
    {"right-fences", [] { launch(3, threads, 0, [] { last_block(true, true); }); }},
    {"right-launches", two_launches},
    {"no-barrier-before-reading", [] { launch(1, threads, 0, [] { pass_on(false, true); }); }},
    {"no-barrier-before-writing", [] { launch(1, threads, 0, [] { pass_on(true, false); }); }},
    {"no-syncwarp", [] { launch(1, threads, 0, [] { pass_on_in_warp(false); }); }},
    {"lane-outside-of-shuffle", [] { launch(1, 32, 0, [] { shuffle_of_half(16); }); }},
    {"two-blocks-write", [] { launch(2, 1, 0, [] { memory[0] = blockIdx.x; }); }},
    {"no-fence-of-writer", [] { launch(3, threads, 0, [] { last_block(false, true); }); }},
    {"no-fence-of-reader", [] { launch(3, threads, 0, [] { last_block(true, false); }); }},
};

}  // namespace

int main(int count, char **arguments) {
  if (count < 2) {
    for (const Case &one : cases) puts(one.name);
    return 0;
  }
  for (const Case &one : cases) {
    if (strcmp(one.name, arguments[1]) != 0) continue;
    one.run();
    return 0;
  }
  fprintf(stderr, "races: no case is called %s\n", arguments[1]);
  return 2;
}
