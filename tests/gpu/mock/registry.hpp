// Kernels by name: how a launch finds the function that g++ compiled for it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "scheduler.hpp"

namespace mock {

// The shape of a launch, and how the emulator is to run it.
struct Shape {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  unsigned workers;
  uint64_t order_seed;
};

// Runs one launch; `arguments` as cuLaunchKernel gets them, a pointer to each argument.
using Kernel = std::function<void(const Shape &, void **arguments)>;

inline std::map<std::string, Kernel> &kernels() {
  // Never destroyed: devices in statics outlive the destructors of this library.
  static auto &all = *new std::map<std::string, Kernel>;
  return all;
}

template <class... Parameters, size_t... Index>
inline void call(void (*kernel)(Parameters...), void **arguments, std::index_sequence<Index...>) {
  kernel(*static_cast<std::decay_t<Parameters> *>(arguments[Index])...);
}

// The types of the arguments come from the kernel's own signature.
template <class... Parameters>
inline bool add_kernel(const char *name, void (*kernel)(Parameters...)) {
  kernels()[name] = [kernel](const Shape &shape, void **arguments) {
    emulator::launch(shape.grid, shape.block, shape.shared_bytes,
                     [=] { call(kernel, arguments, std::index_sequence_for<Parameters...>{}); }, shape.workers,
                     shape.order_seed);
  };
  return true;
}

}  // namespace mock
