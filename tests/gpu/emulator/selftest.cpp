// Tests of the emulator itself: what a kernel is compared with must be right first.
// Run by tools/gpu-check; exits with 0 when everything holds.
#include <numeric>
#include <set>
#include <vector>

#include "check.hpp"
#include "cuda_emulator.hpp"

using emulator::launch;

namespace {

// Every schedule that the tests run a kernel under: in order, then shuffled.
const uint64_t seeds[] = {0, 1, 99, 0x123456789abcdefull};

unsigned linear_thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

// One warp; what each lane computed.
template <class T, class Body>
std::vector<T> warp(Body body) {
  std::vector<T> out(32);
  launch(1, 32, 0, [&] { out[threadIdx.x] = body(threadIdx.x); });
  return out;
}

void indices() {
  const dim3 grid(3, 2, 2), block(5, 3, 2);
  std::vector<unsigned> seen(12 * 30);
  for (uint64_t seed : seeds) {
    std::fill(seen.begin(), seen.end(), 0u);
    launch(grid, block, 0, [&] {
      unsigned linear_block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
      seen[linear_block * 30 + linear_thread()] += 1 + threadIdx.z;
    }, 1, seed);
    for (unsigned i = 0; i < seen.size(); i++) EXPECT(seen[i], 1 + i % 30 / 15);
  }
}

// One type through all four shuffles. Catches a mistake in widths, edges and in packing into words.
template <class T>
void shuffles_of(T unit) {
  auto value = [unit](unsigned lane) { return static_cast<T>(unit * static_cast<T>(lane + 1)); };
  auto broadcast = warp<T>([&](unsigned lane) { return __shfl_sync(0xffffffffu, value(lane), 7); });
  auto in_eights = warp<T>([&](unsigned lane) { return __shfl_sync(0xffffffffu, value(lane), 3, 8); });
  auto flipped = warp<T>([&](unsigned lane) { return __shfl_xor_sync(0xffffffffu, value(lane), 16); });
  auto flipped_out = warp<T>([&](unsigned lane) { return __shfl_xor_sync(0xffffffffu, value(lane), 16, 8); });
  auto down = warp<T>([&](unsigned lane) { return __shfl_down_sync(0xffffffffu, value(lane), 3); });
  auto up = warp<T>([&](unsigned lane) { return __shfl_up_sync(0xffffffffu, value(lane), 3); });
  auto down_in_eights = warp<T>([&](unsigned lane) { return __shfl_down_sync(0xffffffffu, value(lane), 2, 8); });
  for (unsigned lane = 0; lane < 32; lane++) {
    EXPECT(broadcast[lane], value(7));
    EXPECT(in_eights[lane], value(lane / 8 * 8 + 3));
    EXPECT(flipped[lane], value(lane ^ 16));
    EXPECT(flipped_out[lane], value(lane >= 16 ? lane ^ 16 : lane));
    EXPECT(down[lane], value(lane + 3 < 32 ? lane + 3 : lane));
    EXPECT(up[lane], value(lane >= 3 ? lane - 3 : lane));
    EXPECT(down_in_eights[lane], value(lane % 8 + 2 < 8 ? lane + 2 : lane));
  }
}

void shuffles() {
  shuffles_of<unsigned>(0x07654321u);
  shuffles_of<int>(-1234567);
  shuffles_of<float>(-1.375f);
  shuffles_of<uint64_t>(0x0123456789abcdefull);
  shuffles_of<unsigned long long>(0x0fedcba987654321ull);
  shuffles_of<double>(3.0e300 / 64);
}

void votes_and_reductions() {
  auto ballot = warp<unsigned>([](unsigned lane) { return __ballot_sync(0xffffffffu, lane % 3 == 0); });
  auto any = warp<int>([](unsigned lane) { return __any_sync(0xffffffffu, lane == 31) + 2 * __any_sync(0xffffffffu, 0); });
  auto all = warp<int>([](unsigned lane) { return __all_sync(0xffffffffu, 1) + 2 * __all_sync(0xffffffffu, lane != 5); });
  auto match = warp<unsigned>([](unsigned lane) { return __match_any_sync(0xffffffffu, lane / 16); });
  auto sum = warp<unsigned>([](unsigned lane) { return __reduce_add_sync(0xffffffffu, lane); });
  auto least = warp<int>([](unsigned lane) { return __reduce_min_sync(0xffffffffu, static_cast<int>(lane) - 9); });
  auto most = warp<unsigned>([](unsigned lane) { return __reduce_max_sync(0xffffffffu, lane ^ 21); });
  for (unsigned lane = 0; lane < 32; lane++) {
    EXPECT(ballot[lane], 0x49249249u);
    EXPECT(any[lane], 1);
    EXPECT(all[lane], 1);
    EXPECT(match[lane], lane < 16 ? 0x0000ffffu : 0xffff0000u);
    EXPECT(sum[lane], 496u);
    EXPECT(least[lane], -9);
    EXPECT(most[lane], 31u);
  }
}

// Two halves of a warp in loops of different length, each with its own mask: neither may wait for the other
// or read its words.
void masks_are_separate() {
  for (uint64_t seed : seeds) {
    std::vector<unsigned> out(32);
    launch(1, 32, 0, [&] {
      const unsigned lane = threadIdx.x, half = lane / 16, mask = half ? 0xffff0000u : 0x0000ffffu;
      unsigned value = lane;
      for (unsigned round = 0; round < (half ? 7u : 3u); round++) value = __shfl_sync(mask, value, (lane + 1) % 16, 16);
      out[lane] = value;
    }, 1, seed);
    for (unsigned lane = 0; lane < 32; lane++) EXPECT(out[lane], lane / 16 * 16 + (lane + (lane < 16 ? 3 : 7)) % 16);
  }
}

void reverse_through_shared(unsigned *out) {
  __shared__ unsigned values[256];
  values[threadIdx.x] = blockIdx.x * 1000 + threadIdx.x;
  __syncthreads();
  out[blockIdx.x * 256 + threadIdx.x] = values[255 - threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = 0;
}

void barriers() {
  for (uint64_t seed : seeds) {
    for (unsigned workers : {1u, 3u}) {
      std::vector<unsigned> out(5 * 256);
      launch(5, 256, 0, [&] { reverse_through_shared(out.data()); }, workers, seed);
      for (unsigned i = 0; i < out.size(); i++) EXPECT(out[i], i / 256 * 1000 + 255 - i % 256);
    }
  }
}

// A block finds what no kernel can rely on in its shared memory, not zeros and not the last block's values.
void read_then_write_shared(unsigned *first, unsigned *dynamic_first) {
  __shared__ unsigned fixed[64];
  unsigned *dynamic = reinterpret_cast<unsigned *>(emulator::running.dynamic_shared);
  first[blockIdx.x * 64 + threadIdx.x] = fixed[threadIdx.x];
  dynamic_first[blockIdx.x * 64 + threadIdx.x] = dynamic[threadIdx.x];
  __syncthreads();
  fixed[threadIdx.x] = 0;
  dynamic[threadIdx.x] = 0;
}

void shared_memory_is_poisoned() {
  std::vector<unsigned> first(4 * 64), dynamic_first(4 * 64);
  for (unsigned workers : {1u, 2u}) {
    launch(4, 64, 64 * sizeof(unsigned), [&] { read_then_write_shared(first.data(), dynamic_first.data()); }, workers);
#ifndef EMULATOR_ADDRESS_SANITIZER
    for (unsigned value : first) EXPECT(value, 0xcdcdcdcdu);
#endif
    for (unsigned value : dynamic_first) EXPECT(value, 0xcdcdcdcdu);
  }
}

// Every sum is exact, so a lost update shows. Several OS threads run the blocks.
void atomics() {
  unsigned sum = 0, most = 0, least = ~0u, bits = 0, ring = 0;
  unsigned long long wide_sum = 0;
  uint64_t wide_most = 0;
  float float_sum = 0;
  launch(16, 128, 0, [&] {
    const unsigned id = blockIdx.x * 128 + threadIdx.x;
    atomicAdd(&sum, 1);
    atomicAdd(&wide_sum, 1ull << 33);
    atomicMax(&wide_most, static_cast<uint64_t>(id) << 32);
    atomicMax(&most, id);
    atomicMin(&least, id + 5);
    atomicOr(&bits, 1u << id % 32);
    atomicAdd(&float_sum, 0.5f);
    atomicInc(&ring, 9);
  }, 4);
  EXPECT(sum, 2048u);
  EXPECT(wide_sum, 2048ull << 33);
  EXPECT(wide_most, 2047ull << 32);
  EXPECT(most, 2047u);
  EXPECT(least, 5u);
  EXPECT(bits, 0xffffffffu);
  EXPECT(float_sum, 1024.0f);
  EXPECT(ring, 2048u % 10);
  uint64_t word = 7;
  EXPECT(atomicCAS(&word, 7, 9), 7u);
  EXPECT(atomicCAS(&word, 7, 11), 9u);
  EXPECT(word, 9u);
  unsigned exchanged = 3;
  EXPECT(atomicExch(&exchanged, 4), 3u);
  EXPECT(atomicAnd(&exchanged, 5), 4u);
  EXPECT(atomicXor(&exchanged, 6), 4u);
  EXPECT(atomicSub(&exchanged, 3), 2u);
  EXPECT(exchanged, ~0u);
}

// The last block to take a ticket sums what all wrote.
void last_block_sums(unsigned *parts, unsigned *tickets, unsigned *total) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = blockIdx.x + 1;
    __threadfence();
    last = atomicAdd(tickets, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  for (unsigned block = 0; block < gridDim.x; block++) *total += parts[block];
}

void tickets_across_blocks() {
  for (uint64_t seed : seeds) {
    std::vector<unsigned> parts(20);
    unsigned tickets = 0, total = 0;
    launch(20, 64, 0, [&] { last_block_sums(parts.data(), &tickets, &total); }, 2, seed);
    EXPECT(total, 210u);
  }
}

void integer_intrinsics() {
  EXPECT(__popc(0xf0f00001u), 9);
  EXPECT(__popcll(~0ull), 64);
  EXPECT(__clz(0), 32);
  EXPECT(__clz(0x00010000), 15);
  EXPECT(__clzll(0), 64);
  EXPECT(__clzll(1), 63);
  EXPECT(__ffs(0), 0);
  EXPECT(__ffs(8), 4);
  EXPECT(__brev(0x00000001u), 0x80000000u);
  EXPECT(__brev(0x12345678u), 0x1e6a2c48u);
  EXPECT(__brevll(2ull), 0x4000000000000000ull);
  EXPECT(__funnelshift_l(0x89abcdefu, 0x01234567u, 0), 0x01234567u);
  EXPECT(__funnelshift_l(0x89abcdefu, 0x01234567u, 8), 0x23456789u);
  EXPECT(__funnelshift_l(0x80000000u, 0x80000000u, 33), 1u);
  EXPECT(__funnelshift_r(0x89abcdefu, 0x01234567u, 8), 0x6789abcdu);
  EXPECT(__byte_perm(0x33221100u, 0x77665544u, 0x7420u), 0x77442200u);
  EXPECT(__byte_perm(0x000000ffu, 0, 0x0008u), 0xffffffffu);
  EXPECT(__umulhi(0xffffffffu, 0xffffffffu), 0xfffffffeu);
  EXPECT(__umul64hi(~0ull, ~0ull), 0xfffffffffffffffeull);
  EXPECT(__umul64hi(1ull << 63, 6), 3u);
}

void float_intrinsics() {
  EXPECT(__float_as_uint(-2.0f), 0xc0000000u);
  EXPECT(__uint_as_float(0x3fc00000u), 1.5f);
  EXPECT(__float_as_int(-0.0f), std::numeric_limits<int>::min());
  EXPECT(__double_as_longlong(1.0), 0x3ff0000000000000ll);
  EXPECT(__longlong_as_double(0x4000000000000000ll), 2.0);
  EXPECT(__longlong_as_double(0xc000000000000000ull), -2.0);
  EXPECT(__longlong_as_double(uint64_t{0x7ff0000000000000}), std::numeric_limits<double>::infinity());
  // A product that is rounded before the sum; a fused one leaves 2^-24.
  volatile float a = 1.0f + 0x1p-12f, minus_square = -1.0f - 0x1p-11f;
  EXPECT(__fadd_rn(__fmul_rn(a, a), minus_square), 0.0f);
  EXPECT(__fmaf_rn(a, a, minus_square), 0x1p-24f);
  EXPECT(__fsub_rn(1.0f, 0x1p-25f), 1.0f);
  EXPECT(__fdiv_rn(1.0f, 3.0f), 0x1.555556p-2f);
  EXPECT(__fsqrt_rn(2.0f), 0x1.6a09e6p+0f);
  volatile double c = 1.0 + 0x1p-27;
  EXPECT(__dadd_rn(__dmul_rn(c, c), -1.0 - 0x1p-26), 0.0);
  EXPECT(__dsub_rn(1.0, 0x1p-54), 1.0);
  EXPECT(__ddiv_rn(1.0, 3.0), 0x1.5555555555555p-2);
  EXPECT(__dsqrt_rn(2.0), 0x1.6a09e667f3bcdp+0);
  EXPECT(__ull2double_rn(~0ull), 0x1p64);
  EXPECT(__double2ull_rz(-1.0), 0u);
  EXPECT(__double2ull_rz(1e30), ~0ull);
  EXPECT(__double2ull_rz(123456789012345.9), 123456789012345ull);
  EXPECT(__float2int_rn(2.5f), 2);
  EXPECT(__float2uint_rz(-7.0f), 0u);
}

void orders() {
  // 0x9e3779b1 divides one of them: a stride alone would not be a permutation there.
  for (uint64_t blocks : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{31}, uint64_t{4096}, uint64_t{65537}}) {
    std::set<std::vector<uint64_t>> distinct;
    for (uint64_t seed : seeds) {
      std::vector<uint64_t> order = emulator::block_order(blocks, seed);
      distinct.insert(order);
      if (seed == 0) EXPECT(std::is_sorted(order.begin(), order.end()), true);
      std::sort(order.begin(), order.end());
      for (uint64_t i = 0; i < blocks; i++) EXPECT(order[i], i);
    }
    if (blocks >= 31) EXPECT(distinct.size(), std::size(seeds));
  }
  // A seed shuffles the threads of a block too, between any two barriers.
  std::set<std::vector<unsigned>> distinct;
  for (uint64_t seed : seeds) {
    std::vector<unsigned> arrivals(96);
    unsigned next = 0;
    launch(1, 96, 0, [&] {
      __syncthreads();
      arrivals[atomicAdd(&next, 1)] = threadIdx.x;
    }, 1, seed);
    distinct.insert(arrivals);
    std::sort(arrivals.begin(), arrivals.end());
    for (unsigned i = 0; i < 96; i++) EXPECT(arrivals[i], i);
  }
  EXPECT(distinct.size(), std::size(seeds));
}

void undefined_behaviour_ends_the_process() {
  using check::dies;
  dies("divergent block: 32 threads at a barrier, 0 in a warp collective, 32 exited, of 64", [] {
    launch(1, 64, 0, [] { if (threadIdx.x < 32) __syncthreads(); });
  });
  dies("wait at different barriers", [] {
    launch(1, 64, 0, [] {
      if (threadIdx.x < 32)
        __syncthreads();
      else
        __syncthreads();
    });
  });
  dies("names lanes that have exited: 00000001", [] {
    launch(1, 32, 0, [] { if (threadIdx.x != 0) __syncwarp(); });
  });
  dies("divergent block: 1 threads at a barrier, 31 in a warp collective", [] {
    launch(1, 32, 0, [] {
      if (threadIdx.x == 0)
        __syncthreads();
      else
        __shfl_xor_sync(0xffffffffu, 1, 1);
    });
  });
  dies("lane 3 is not in its own mask 00000007", [] {
    launch(1, 32, 0, [] { if (threadIdx.x < 4) __ballot_sync(0x7u, 1); });
  });
  dies("reads lane 9, which is not in the mask 000000ff", [] {
    launch(1, 32, 0, [] { if (threadIdx.x < 8) __shfl_sync(0xffu, 1, 9); });
  });
  dies("lanes that the block does not have", [] { launch(1, 48, 0, [] { __syncwarp(); }); });
  dies("in different operations", [] {
    launch(1, 32, 0, [] {
      if (threadIdx.x == 0)
        __ballot_sync(0xffffffffu, 1);
      else
        __shfl_sync(0xffffffffu, 1, 0);
    });
  });
  dies("a block of 1025 threads", [] { launch(1, 1025, 0, [] {}); });
  dies("a kernel launched a kernel", [] { launch(1, 1, 0, [] { launch(1, 1, 0, [] {}); }); });
  dies("the kernel called __trap() [block 2 0 0]", [] { launch(4, 1, 0, [] { if (blockIdx.x == 2) __trap(); }); });
}

}  // namespace

int main() {
  const std::pair<const char *, void (*)()> tests[] = {
      {"indices", indices},
      {"shuffles", shuffles},
      {"votes and reductions", votes_and_reductions},
      {"masks are separate", masks_are_separate},
      {"barriers", barriers},
      {"shared memory is poisoned", shared_memory_is_poisoned},
      {"atomics", atomics},
      {"tickets across blocks", tickets_across_blocks},
      {"integer intrinsics", integer_intrinsics},
      {"float intrinsics", float_intrinsics},
      {"orders", orders},
      {"undefined behaviour ends the process", undefined_behaviour_ends_the_process},
  };
  for (const auto &[name, test] : tests) {
    printf("%s\n", name);
    test();
  }
  printf("%zu tests of the emulator passed\n", std::size(tests));
}
