// libcuda.so.1 for tests: the driver's functions that candle (through cudarc) calls, on the CPU.
//
// Device memory is host memory, streams run at once, a launch runs the function of the kernel's name that
// g++ compiled. So a test executes the whole host side of a CUDA program: modules, arguments, shapes, copies,
// error paths. It says nothing about time, and numbers are those of the host's libm.
//
// Signatures are those of CUDA 13. What is not here answers CUDA_ERROR_NOT_SUPPORTED (build.py).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "memory.hpp"
#include "registry.hpp"
#include "settings.hpp"

using mock::Address;
using mock::complain;
using mock::log;

namespace {

enum Status {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  invalid_device = 101,
  invalid_image = 200,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  not_supported = 801,
};

constexpr int cuda_version = 13000;
constexpr size_t shared_bytes_of_block = 48 * 1024;
constexpr size_t shared_bytes_opted_in = 227 * 1024;
constexpr unsigned max_grid_yz = 65535;

struct Module {
  std::string text;
};

struct Function {
  std::string name;
  const mock::Kernel *kernel;
  size_t max_dynamic_shared = shared_bytes_of_block;
};

struct Event {
  double milliseconds;
};

// Contexts and streams have no state of their own: their addresses are what counts.
char primary_context;
thread_local void *current_context;

double milliseconds_now() {
  const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(since_start).count();
}

void *host(Address device) { return reinterpret_cast<void *>(device); }

// What a device of compute capability 9.0 answers, as far as anybody asks.
int attribute(int which) {
  const std::map<int, int> known = {
      {1, static_cast<int>(emulator::max_block_threads)},      // threads of a block, then per dimension
      {2, static_cast<int>(emulator::max_block_threads)},
      {3, static_cast<int>(emulator::max_block_threads)},
      {4, 64},
      {5, 0x7fffffff},                                         // blocks of a grid per dimension
      {6, static_cast<int>(max_grid_yz)},
      {7, static_cast<int>(max_grid_yz)},
      {8, static_cast<int>(shared_bytes_of_block)},
      {10, static_cast<int>(emulator::warp_lanes)},
      {16, 2},                                                 // multiprocessors
      {38, 50 * 1024 * 1024},                                  // bytes of L2
      {39, 2048},                                              // threads of a multiprocessor
      {75, 9},                                                 // compute capability
      {76, 0},
      {97, static_cast<int>(shared_bytes_opted_in)},
      {115, 0},                                                // memory pools: no, so cuMemAlloc is called
  };
  const auto found = known.find(which);
  return found == known.end() ? 0 : found->second;
}

// Text without any entry is what the stand-in for nvcc writes: every kernel is taken to be in it.
bool module_has(const Module &module, const std::string &kernel) {
  if (module.text.find(".entry") == std::string::npos) return true;
  return module.text.find(".entry " + kernel + "(") != std::string::npos;
}

int copy_from_host(Address to, const void *from, size_t bytes) {
  if (!mock::holds(to, bytes, "a copy to the device")) return invalid_value;
  memcpy(host(to), from, bytes);
  log("copy htod %zu", bytes);
  return success;
}

int copy_to_host(void *to, Address from, size_t bytes) {
  if (!mock::holds(from, bytes, "a copy from the device")) return invalid_value;
  memcpy(to, host(from), bytes);
  log("copy dtoh %zu", bytes);
  return success;
}

int copy_on_device(Address to, Address from, size_t bytes) {
  if (!mock::holds(to, bytes, "a copy on the device (to)")) return invalid_value;
  if (!mock::holds(from, bytes, "a copy on the device (from)")) return invalid_value;
  memmove(host(to), host(from), bytes);
  log("copy dtod %zu", bytes);
  return success;
}

int fill(Address to, unsigned char value, size_t bytes) {
  if (!mock::holds(to, bytes, "a fill")) return invalid_value;
  memset(host(to), value, bytes);
  log("fill %zu", bytes);
  return success;
}

int create_event(void **event) {
  *event = new Event{milliseconds_now()};
  return success;
}

int create_stream(void **stream) {
  *stream = new char;
  return success;
}

bool launchable(const Function &function, dim3 grid, dim3 block, size_t shared_bytes) {
  const bool grid_fits = grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.y <= max_grid_yz && grid.z <= max_grid_yz;
  const size_t threads = static_cast<size_t>(block.x) * block.y * block.z;
  const bool block_fits = threads > 0 && threads <= emulator::max_block_threads;
  if (grid_fits && block_fits && shared_bytes <= function.max_dynamic_shared) return true;
  complain("%s cannot be launched with grid %u %u %u, block %u %u %u and %zu bytes of shared memory",
           function.name.c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes);
  return false;
}

const char *name_of(int status) {
  switch (status) {
    case success: return "CUDA_SUCCESS";
    case invalid_value: return "CUDA_ERROR_INVALID_VALUE";
    case out_of_memory: return "CUDA_ERROR_OUT_OF_MEMORY";
    case invalid_device: return "CUDA_ERROR_INVALID_DEVICE";
    case invalid_image: return "CUDA_ERROR_INVALID_IMAGE";
    case invalid_handle: return "CUDA_ERROR_INVALID_HANDLE";
    case not_found: return "CUDA_ERROR_NOT_FOUND";
    case not_ready: return "CUDA_ERROR_NOT_READY";
    case not_supported: return "CUDA_ERROR_NOT_SUPPORTED";
    default: return "CUDA_ERROR_UNKNOWN";
  }
}

}  // namespace

extern "C" {

// ---------------------------------------------------------------------------- device and context
int cuInit(unsigned) { return success; }
int cuDriverGetVersion(int *version) { return *version = cuda_version, success; }
int cuDeviceGetCount(int *count) { return *count = 1, success; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, ordinal == 0 ? success : invalid_device; }
int cuDeviceGetName(char *name, int size, int) {
  snprintf(name, static_cast<size_t>(size), "mock device (CPU)");
  return success;
}
int cuDeviceGetUuid_v2(unsigned char *uuid, int) { return memset(uuid, 0x42, 16), success; }
int cuDeviceGetUuid(unsigned char *uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }
int cuDeviceGetAttribute(int *value, int which, int) { return *value = attribute(which), success; }
int cuDeviceTotalMem_v2(size_t *bytes, int) { return *bytes = mock::settings().memory, success; }
int cuDevicePrimaryCtxRetain(void **context, int) { return *context = &primary_context, success; }
int cuDevicePrimaryCtxRelease_v2(int) { return success; }
int cuCtxSetCurrent(void *context) { return current_context = context, success; }
int cuCtxGetCurrent(void **context) { return *context = current_context, success; }
int cuCtxSynchronize() { return success; }
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { return *least = *greatest = 0, success; }
int cuMemGetInfo_v2(size_t *free, size_t *total) {
  *total = mock::settings().memory;
  *free = *total - mock::bytes_in_use();
  return success;
}
int cuGetErrorName(int status, const char **name) { return *name = name_of(status), success; }
int cuGetErrorString(int, const char **text) { return *text = "an error of the mock driver", success; }

// ---------------------------------------------------------------------------- streams and events
int cuStreamCreate(void **stream, unsigned) { return create_stream(stream); }
int cuStreamCreateWithPriority(void **stream, unsigned, int) { return create_stream(stream); }
int cuStreamDestroy_v2(void *stream) { return delete static_cast<char *>(stream), success; }
int cuStreamSynchronize(void *) { return success; }
int cuStreamQuery(void *) { return success; }
int cuStreamWaitEvent(void *, void *, unsigned) { return success; }
int cuStreamIsCapturing(void *, int *status) { return *status = 0, success; }
int cuLaunchHostFunc(void *, void (*function)(void *), void *data) { return function(data), success; }
int cuEventCreate(void **event, unsigned) { return create_event(event); }
int cuEventDestroy_v2(void *event) { return delete static_cast<Event *>(event), success; }
int cuEventRecord(void *event, void *) { return static_cast<Event *>(event)->milliseconds = milliseconds_now(), success; }
int cuEventSynchronize(void *) { return success; }
int cuEventQuery(void *) { return success; }
int cuEventElapsedTime_v2(float *milliseconds, void *start, void *end) {
  *milliseconds = static_cast<float>(static_cast<Event *>(end)->milliseconds - static_cast<Event *>(start)->milliseconds);
  return success;
}
int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}

// ---------------------------------------------------------------------------- memory
int cuMemAlloc_v2(Address *start, size_t bytes) {
  void *block = mock::allocate(bytes);
  *start = reinterpret_cast<Address>(block);
  return block ? success : out_of_memory;
}
int cuMemAllocAsync(Address *start, size_t bytes, void *) { return cuMemAlloc_v2(start, bytes); }
int cuMemFree_v2(Address start) { return mock::release(start) ? success : invalid_value; }
int cuMemFreeAsync(Address start, void *) { return cuMemFree_v2(start); }
int cuMemHostAlloc(void **start, size_t bytes, unsigned) {
  *start = malloc(bytes ? bytes : 1);
  return *start ? success : out_of_memory;
}
int cuMemFreeHost(void *start) { return free(start), success; }
int cuMemcpyHtoD_v2(Address to, const void *from, size_t bytes) { return copy_from_host(to, from, bytes); }
int cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, void *) { return copy_from_host(to, from, bytes); }
int cuMemcpyDtoH_v2(void *to, Address from, size_t bytes) { return copy_to_host(to, from, bytes); }
int cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, void *) { return copy_to_host(to, from, bytes); }
int cuMemcpyDtoD_v2(Address to, Address from, size_t bytes) { return copy_on_device(to, from, bytes); }
int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void *) { return copy_on_device(to, from, bytes); }
int cuMemsetD8_v2(Address to, unsigned char value, size_t bytes) { return fill(to, value, bytes); }
int cuMemsetD8Async(Address to, unsigned char value, size_t bytes, void *) { return fill(to, value, bytes); }

// ---------------------------------------------------------------------------- modules and launches
int cuModuleLoadData(void **module, const void *image) {
  *module = new Module{static_cast<const char *>(image)};
  return success;
}
int cuModuleUnload(void *module) { return delete static_cast<Module *>(module), success; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
  if (!module_has(*static_cast<Module *>(module), name)) {
    complain("the module has no kernel %s", name);
    return not_found;
  }
  const auto kernel = mock::kernels().find(name);
  if (kernel == mock::kernels().end()) {
    complain("kernel %s was not compiled for the mock driver", name);
    return not_found;
  }
  *function = new Function{name, &kernel->second};
  return success;
}
int cuFuncSetAttribute(void *function, int which, int value) {
  constexpr int max_dynamic_shared = 8;
  if (which != max_dynamic_shared) return success;
  if (value < 0 || static_cast<size_t>(value) > shared_bytes_opted_in) return invalid_value;
  static_cast<Function *>(function)->max_dynamic_shared = static_cast<size_t>(value);
  return success;
}
int cuFuncGetAttribute(int *value, int which, void *) {
  constexpr int max_threads = 0;
  *value = which == max_threads ? static_cast<int>(emulator::max_block_threads) : 0;
  return success;
}
int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, void *, void **arguments, void **extra) {
  const Function &launched = *static_cast<Function *>(function);
  const dim3 grid(grid_x, grid_y, grid_z), block(block_x, block_y, block_z);
  log("launch %s grid %u %u %u block %u %u %u shared %u", launched.name.c_str(), grid_x, grid_y, grid_z, block_x,
      block_y, block_z, shared_bytes);
  if (extra) return not_supported;
  if (!launchable(launched, grid, block, shared_bytes)) return invalid_value;
  const auto &settings = mock::settings();
  (*launched.kernel)({grid, block, shared_bytes, settings.workers, settings.order_seed}, arguments);
  return success;
}

}  // extern "C"
