// Where this OS thread's __shared__ variables lie, so that they can be poisoned. Included by emulator.cpp alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include <link.h>

// The linker's names for the ends of the section of __shared__ variables; absent where no kernel has any.
extern "C" {
extern const char __start_emulator_shared[] __attribute__((weak, visibility("hidden")));
extern const char __stop_emulator_shared[] __attribute__((weak, visibility("hidden")));
}

namespace emulator {

// This OS thread's copy of the section of __shared__ variables.
struct SharedSection {
  char *start = nullptr;
  size_t bytes = 0;
};

inline SharedSection find_shared_section() {
  SharedSection found;
  if (!__start_emulator_shared) return found;
  found.bytes = static_cast<size_t>(__stop_emulator_shared - __start_emulator_shared);
  // The section's address is that of the initial image, which every thread's copy follows.
  auto visit = [](dl_phdr_info *module, size_t, void *out) {
    if (!module->dlpi_tls_data) return 0;
    auto image = reinterpret_cast<uintptr_t>(__start_emulator_shared);
    for (int i = 0; i < module->dlpi_phnum; i++) {
      const auto &segment = module->dlpi_phdr[i];
      uintptr_t begin = module->dlpi_addr + segment.p_vaddr;
      if (segment.p_type != PT_TLS || image < begin || image >= begin + segment.p_memsz) continue;
      static_cast<SharedSection *>(out)->start = static_cast<char *>(module->dlpi_tls_data) + (image - begin);
      return 1;
    }
    return 0;
  };
  dl_iterate_phdr(visit, &found);
  if (!found.start) found.bytes = 0;
  return found;
}

}  // namespace emulator
