// The scheduler behind cuda_emulator.hpp. Compile it without -fsanitize=thread even in such a program (with
// -D__SANITIZE_THREAD__=1, so that it still tells the sanitizer about fibers): its own records are not the
// kernel's memory.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "atomics.hpp"
#include "fiber_memory.hpp"
#include "scheduler.hpp"
#include "shared_section.hpp"

namespace emulator {

__thread Running running = {};

namespace {

constexpr unsigned char poison = 0xcd;

// ---------------------------------------------------------------------------- random orders

// SplitMix64: a few good bits a step from any seed.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t bound) { return next() % bound; }
  template <class T>
  void shuffle(std::vector<T> &items) {
    for (size_t left = items.size(); left > 1; left--) std::swap(items[left - 1], items[below(left)]);
  }

 private:
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

// ---------------------------------------------------------------------------- threads, warps, blocks

struct Fiber {
  Context context;
  uint3 index;
  Site site;                   // where it waits
  bool observed = false;       // an atomic operation since its last fence, by itself or before a barrier
};

// The 32 lanes by what they do; a lane is in exactly one of the four sets.
struct Warp {
  unsigned runnable = 0, in_collective = 0, at_barrier = 0, exited = 0;
  unsigned mask[warp_lanes];
  Collective kind[warp_lanes];
  uint64_t word[warp_lanes];       // given
  History merger;
};

struct Tags {
  char arrived, may_go;
};

class Scheduler {
 public:
  void run_block(uint3 block, uint64_t seed);
  void prepare(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &kernel);

  void wait_at_barrier(Site site);
  const uint64_t *wait_in_warp(Collective kind, unsigned mask, uint64_t word, Site site);
  void run_fiber();
  void note_atomic() { fibers_[running.linear_thread].observed = true; }
  void pass_fence();
  bool busy() const { return kernel_ != nullptr; }
  void finish() { kernel_ = nullptr; }

 private:
  void start_fibers();
  void run_until_all_wait(uint64_t seed);
  void run_round(unsigned warp, Random *random);
  void resume(unsigned thread);
  void yield();
  void complete_collectives(unsigned warp);
  void release_barrier();
  unsigned count(unsigned Warp::*set) const;
  void merge(History &merger, unsigned first, unsigned lanes);
  uint64_t *received(unsigned warp) const { return reinterpret_cast<uint64_t *>(received_.start()) + warp * warp_lanes; }
  [[noreturn]] void fail_stuck() const;

  const std::function<void()> *kernel_ = nullptr;
  unsigned threads_ = 0;
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  std::vector<Tags> tags_;
  Mapping dynamic_shared_;
  size_t dynamic_bytes_ = 0;
  Mapping received_;           // a word per thread: what its warp's last collective gave
  SharedSection shared_section_;
  History barrier_merger_;
  char start_tag_ = 0;
  Context own_;
  Stacks stacks_;
};

// One per OS thread, kept between launches: mapping stacks costs more than most blocks.
thread_local Scheduler scheduler;
// Every thread's end happens before the return of its launch.
[[maybe_unused]] char launch_end_tag;
[[maybe_unused]] char fence_tag;

void enter_fiber() {
  scheduler.run_fiber();
  abort();
}

void Scheduler::prepare(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &kernel) {
  threads_ = block.x * block.y * block.z;
  if (threads_ == 0 || threads_ > max_block_threads) fail("a block of %u threads", threads_);
  stacks_.reserve(threads_);
  fibers_.resize(threads_);
  tags_.resize(threads_);
  warps_.resize((threads_ + warp_lanes - 1) / warp_lanes);
  received_.reserve(warps_.size() * warp_lanes * sizeof(uint64_t));
  dynamic_shared_.reserve(shared_bytes);
  dynamic_bytes_ = shared_bytes;
  running.dynamic_shared = dynamic_shared_.start();
  running.block_dim = block;
  running.grid_dim = grid;
  shared_section_ = find_shared_section();
  kernel_ = &kernel;
  own_.history.take_current();
}

void Scheduler::start_fibers() {
  const dim3 size = running.block_dim;
  for (unsigned thread = 0; thread < threads_; thread++) {
    Fiber &fiber = fibers_[thread];
    fiber.index = {thread % size.x, thread / size.x % size.y, thread / (size.x * size.y)};
    fiber.context.stack_bottom = stacks_.bottom(thread);
    fiber.context.stack_size = stack_bytes;
    fiber.context.history.create();
    fiber.observed = false;
    // What emulator_switch_stacks pops: registers, then the address it returns to. One word more keeps the
    // alignment that a called function expects.
    auto *stack = reinterpret_cast<void **>(stacks_.top(thread)) - (saved_registers + 2);
    std::fill(stack, stack + saved_registers + 2, nullptr);
    stack[saved_registers] = reinterpret_cast<void *>(&enter_fiber);
    fiber.context.stack_pointer = stack;
  }
  barrier_merger_.create();
  for (unsigned warp = 0; warp < warps_.size(); warp++) {
    warps_[warp] = Warp{};
    warps_[warp].merger.create();
    unsigned lanes = std::min(warp_lanes, threads_ - warp * warp_lanes);
    warps_[warp].runnable = lanes == warp_lanes ? all_lanes : (1u << lanes) - 1;
  }
}

void Scheduler::run_block(uint3 block, uint64_t seed) {
  running.block_index = block;
  // Shared memory of a GPU holds whatever was there.
  if (shared_section_.bytes) memset(shared_section_.start, poison, shared_section_.bytes);
  if (dynamic_bytes_) memset(running.dynamic_shared, poison, dynamic_bytes_);
  start_fibers();
  release(&start_tag_);
  for (;;) {
    run_until_all_wait(seed);
    if (count(&Warp::exited) == threads_) break;
    release_barrier();
    seed = seed ? seed * 6364136223846793005ull + 1 : 0;
  }
  for (Fiber &fiber : fibers_) fiber.context.history.destroy();
  for (Warp &warp : warps_) warp.merger.destroy();
  barrier_merger_.destroy();
}

// Runs until every thread has exited or waits at the barrier.
void Scheduler::run_until_all_wait(uint64_t seed) {
  if (!seed) {
    for (unsigned warp = 0; warp < warps_.size(); warp++)
      while (warps_[warp].runnable) run_round(warp, nullptr);
    return;
  }
  Random random(seed);
  std::vector<unsigned> live;
  for (unsigned warp = 0; warp < warps_.size(); warp++)
    if (warps_[warp].runnable) live.push_back(warp);
  while (!live.empty()) {
    size_t pick = random.below(live.size());
    run_round(live[pick], &random);
    if (warps_[live[pick]].runnable) continue;
    live[pick] = live.back();
    live.pop_back();
  }
}

// Every runnable lane of a warp up to where it waits.
void Scheduler::run_round(unsigned warp, Random *random) {
  std::vector<unsigned> order;
  unsigned lanes = warps_[warp].runnable;
  if (random) {
    for (unsigned rest = lanes; rest; rest &= rest - 1) order.push_back(__builtin_ctz(rest));
    random->shuffle(order);
    for (unsigned lane : order) resume(warp * warp_lanes + lane);
  } else {
    for (; lanes; lanes &= lanes - 1) resume(warp * warp_lanes + __builtin_ctz(lanes));
  }
  complete_collectives(warp);
}

void Scheduler::resume(unsigned thread) {
  running.thread_index = fibers_[thread].index;
  running.linear_thread = thread;
  switch_context(own_, fibers_[thread].context, false);
}

void Scheduler::yield() { switch_context(fibers_[running.linear_thread].context, own_, false); }

void Scheduler::run_fiber() {
#ifdef EMULATOR_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(nullptr, &own_.stack_bottom, &own_.stack_size);
#endif
  acquire(&start_tag_);
  (*kernel_)();
  release(&launch_end_tag);
  const unsigned thread = running.linear_thread, bit = 1u << thread % warp_lanes;
  Warp &warp = warps_[thread / warp_lanes];
  warp.runnable &= ~bit;
  warp.exited |= bit;
  switch_context(fibers_[thread].context, own_, true);
}

// ---------------------------------------------------------------------------- waiting

void Scheduler::wait_at_barrier(Site site) {
  const unsigned thread = running.linear_thread, bit = 1u << thread % warp_lanes;
  Warp &warp = warps_[thread / warp_lanes];
  warp.runnable &= ~bit;
  warp.at_barrier |= bit;
  fibers_[thread].site = site;
  release(&tags_[thread].arrived);
  yield();
  acquire(&tags_[thread].may_go);
}

const uint64_t *Scheduler::wait_in_warp(Collective kind, unsigned mask, uint64_t word, Site site) {
  const unsigned thread = running.linear_thread, lane = thread % warp_lanes, bit = 1u << lane;
  Warp &warp = warps_[thread / warp_lanes];
  if (!(mask & bit)) fail("%s:%d: lane %u is not in its own mask %08x", site.file, site.line, lane, mask);
  warp.runnable &= ~bit;
  warp.in_collective |= bit;
  warp.mask[lane] = mask;
  warp.kind[lane] = kind;
  warp.word[lane] = word;
  fibers_[thread].site = site;
  release(&tags_[thread].arrived);
  yield();
  acquire(&tags_[thread].may_go);
  return received(thread / warp_lanes);
}

// Lets the lanes of each mask go on whose lanes all wait for one another.
void Scheduler::complete_collectives(unsigned index) {
  Warp &warp = warps_[index];
  const unsigned first = index * warp_lanes;
  unsigned left = warp.in_collective;
  while (left) {
    const unsigned leader = __builtin_ctz(left), mask = warp.mask[leader];
    left &= ~(1u << leader);
    const Site site = fibers_[first + leader].site;
    if (const unsigned gone = mask & warp.exited)
      fail("%s:%d: the mask %08x names lanes that have exited: %08x", site.file, site.line, mask, gone);
    if (const unsigned lanes = std::min(warp_lanes, threads_ - first); lanes < warp_lanes && mask >> lanes)
      fail("%s:%d: the mask %08x names lanes that the block does not have (%u in this warp)", site.file, site.line,
           mask, lanes);
    if (mask & ~warp.in_collective) continue;
    bool together = true;
    for (unsigned rest = mask; rest; rest &= rest - 1) together &= warp.mask[__builtin_ctz(rest)] == mask;
    if (!together) continue;
    for (unsigned rest = mask; rest; rest &= rest - 1) {
      const unsigned lane = __builtin_ctz(rest);
      if (warp.kind[lane] != warp.kind[leader]) {
        const Site other = fibers_[first + lane].site;
        fail("lanes of one mask are in different operations: %s:%d and %s:%d", site.file, site.line, other.file,
             other.line);
      }
      received(index)[lane] = warp.word[lane];
    }
    merge(warp.merger, first, mask);
    warp.in_collective &= ~mask;
    warp.runnable |= mask;
    left &= ~mask;
  }
}

void Scheduler::release_barrier() {
  if (count(&Warp::at_barrier) != threads_) fail_stuck();
  const Site site = fibers_[0].site;
  for (const Fiber &fiber : fibers_)
    if (fiber.site.line != site.line || strcmp(fiber.site.file, site.file) != 0)
      fail("threads of a block wait at different barriers: %s:%d and %s:%d", site.file, site.line, fiber.site.file,
           fiber.site.line);
  for (unsigned warp = 0; warp < warps_.size(); warp++) {
    warps_[warp].runnable = warps_[warp].at_barrier;
    warps_[warp].at_barrier = 0;
  }
#ifdef EMULATOR_THREAD_SANITIZER
  barrier_merger_.enter();
  for (Tags &tags : tags_) acquire(&tags.arrived);
  for (Tags &tags : tags_) release(&tags.may_go);
  own_.history.enter();
  bool observed = false;
  for (const Fiber &fiber : fibers_) observed |= fiber.observed;
  for (Fiber &fiber : fibers_) fiber.observed = observed;
#endif
}

// Tells the sanitizer that what each of the lanes did before happens before what any of them does next, and
// nothing else. A tag common to all would also carry what a fast lane does after: races would be missed.
void Scheduler::merge([[maybe_unused]] History &merger, [[maybe_unused]] unsigned first, [[maybe_unused]] unsigned lanes) {
#ifdef EMULATOR_THREAD_SANITIZER
  merger.enter();
  for (unsigned rest = lanes; rest; rest &= rest - 1) acquire(&tags_[first + __builtin_ctz(rest)].arrived);
  for (unsigned rest = lanes; rest; rest &= rest - 1) release(&tags_[first + __builtin_ctz(rest)].may_go);
  own_.history.enter();
  bool observed = false;
  for (unsigned rest = lanes; rest; rest &= rest - 1) observed |= fibers_[first + __builtin_ctz(rest)].observed;
  for (unsigned rest = lanes; rest; rest &= rest - 1) fibers_[first + __builtin_ctz(rest)].observed = observed;
#endif
}

// A fence makes the past visible to those who see what comes after it; it makes the past of others visible
// only to one who has seen something of theirs, which takes an atomic operation before it.
void Scheduler::pass_fence() {
  bool &observed = fibers_[running.linear_thread].observed;
  if (observed) acquire(&fence_tag);
  observed = false;
  release(&fence_tag);
}

unsigned Scheduler::count(unsigned Warp::*set) const {
  unsigned total = 0;
  for (const Warp &warp : warps_) total += __builtin_popcount(warp.*set);
  return total;
}

void Scheduler::fail_stuck() const {
  for (unsigned thread = 0; thread < threads_; thread++) {
    const Warp &warp = warps_[thread / warp_lanes];
    if (warp.exited >> thread % warp_lanes & 1) continue;
    const bool barrier = warp.at_barrier >> thread % warp_lanes & 1;
    fprintf(stderr, "emulator: thread %u waits at %s:%d (%s)\n", thread, fibers_[thread].site.file,
            fibers_[thread].site.line, barrier ? "barrier" : "warp collective");
    break;
  }
  fail("divergent block: %u threads at a barrier, %u in a warp collective, %u exited, of %u", count(&Warp::at_barrier),
       count(&Warp::in_collective), count(&Warp::exited), threads_);
}

uint3 block_at(uint64_t linear, dim3 grid) {
  const uint64_t plane = static_cast<uint64_t>(grid.x) * grid.y;
  return {static_cast<unsigned>(linear % grid.x), static_cast<unsigned>(linear / grid.x % grid.y),
          static_cast<unsigned>(linear / plane)};
}

}  // namespace

// ---------------------------------------------------------------------------- public

void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("emulator: ", stderr);
  vfprintf(stderr, format, arguments);
  const uint3 block = running.block_index;
  fprintf(stderr, " [block %u %u %u]\n", block.x, block.y, block.z);
  va_end(arguments);
  abort();
}

void fence() {
  if (scheduler.busy()) scheduler.pass_fence();
#ifndef EMULATOR_THREAD_SANITIZER
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

void note_atomic() {
  if (scheduler.busy()) scheduler.note_atomic();
}

void block_barrier(Site site) { scheduler.wait_at_barrier(site); }

const uint64_t *exchange(Collective kind, unsigned mask, uint64_t word, Site site) {
  return scheduler.wait_in_warp(kind, mask, word, site);
}

std::vector<uint64_t> block_order(uint64_t blocks, uint64_t seed) {
  std::vector<uint64_t> order(blocks);
  for (uint64_t i = 0; i < blocks; i++) order[i] = i;
  if (seed) Random(seed).shuffle(order);
  return order;
}

void launch(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &kernel, unsigned workers,
            uint64_t order_seed) {
  if (scheduler.busy()) fail("a kernel launched a kernel");
  const uint64_t blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
  const std::vector<uint64_t> order = order_seed ? block_order(blocks, order_seed) : std::vector<uint64_t>{};
  std::atomic<uint64_t> next{0};
  // Runs blocks on this OS thread until none is left, or one.
  auto run = [&](bool only_one) {
    scheduler.prepare(grid, block, shared_bytes, kernel);
    for (uint64_t i; (i = next.fetch_add(1)) < blocks;) {
      const uint64_t linear = order_seed ? order[i] : i;
      scheduler.run_block(block_at(linear, grid), order_seed ? (order_seed ^ (linear * 0x9e3779b97f4a7c15ull)) | 1 : 0);
      if (only_one) break;
    }
    scheduler.finish();
  };
#if defined(EMULATOR_ADDRESS_SANITIZER)
  // __shared__ is one variable of the process here (cuda_emulator.hpp).
  static std::mutex one_block;
  std::lock_guard<std::mutex> guard(one_block);
  workers = 1;
#endif
  auto run_on_threads = [&](unsigned count, bool only_one) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < count; i++) threads.emplace_back(run, only_one);
    for (std::thread &thread : threads) thread.join();
  };
#if defined(EMULATOR_THREAD_SANITIZER)
  // A fresh OS thread for every block: its __shared__ variables are memory that no other block touched, so
  // that no edge between blocks is needed and races between them are seen.
  while (next.load() < blocks) run_on_threads(std::max(workers, 1u), true);
  acquire(&launch_end_tag);
#else
  if (workers <= 1)
    run(false);
  else
    run_on_threads(workers, false);
#endif
}

}  // namespace emulator
