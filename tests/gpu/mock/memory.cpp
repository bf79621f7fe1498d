// Device memory of the mock driver.
#include "memory.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "settings.hpp"

namespace mock {
namespace {

constexpr unsigned char never_written = 0xcd;

struct Blocks {
  std::mutex lock;
  std::map<Address, size_t> by_start;
  size_t in_use = 0;
};

Blocks &blocks() {
  // Never destroyed: tensors in statics are freed after the destructors of this library ran.
  static Blocks &all = *new Blocks;
  return all;
}

}  // namespace

void *allocate(size_t bytes) {
  Blocks &all = blocks();
  std::lock_guard<std::mutex> guard(all.lock);
  if (bytes > settings().memory - all.in_use) return nullptr;
  void *block = malloc(bytes ? bytes : 1);
  if (!block) return nullptr;
  memset(block, never_written, bytes);
  all.by_start[reinterpret_cast<Address>(block)] = bytes;
  all.in_use += bytes;
  return block;
}

bool release(Address start) {
  Blocks &all = blocks();
  std::lock_guard<std::mutex> guard(all.lock);
  const auto block = all.by_start.find(start);
  if (block == all.by_start.end()) {
    complain("%llx is freed but was not allocated", start);
    return false;
  }
  all.in_use -= block->second;
  all.by_start.erase(block);
  free(reinterpret_cast<void *>(start));
  return true;
}

size_t bytes_in_use() {
  Blocks &all = blocks();
  std::lock_guard<std::mutex> guard(all.lock);
  return all.in_use;
}

bool holds(Address start, size_t bytes, const char *operation) {
  if (bytes == 0) return true;
  Blocks &all = blocks();
  std::lock_guard<std::mutex> guard(all.lock);
  auto block = all.by_start.upper_bound(start);
  if (block != all.by_start.begin()) {
    --block;
    if (start + bytes <= block->first + block->second) return true;
  }
  complain("%s of %zu bytes at %llx is not within a block of device memory", operation, bytes, start);
  return false;
}

}  // namespace mock
