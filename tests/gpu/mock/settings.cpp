// The mock driver's settings and its two voices.
#include "settings.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace mock {
namespace {

uint64_t number(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  if (!text || !*text) return otherwise;
  char *end = nullptr;
  const uint64_t value = strtoull(text, &end, 10);
  if (*end == '\0') return value;
  fprintf(stderr, "mock CUDA: %s is %s, not a number\n", name, text);
  exit(2);
}

}  // namespace

const Settings &settings() {
  static const Settings all = [] {
    const char *launches = getenv("MOCK_CUDA_LAUNCHES");
    constexpr uint64_t gibibyte = 1ull << 30;
    return Settings{number("MOCK_CUDA_SPLIT", 0) != 0, launches ? launches : "", number("MOCK_CUDA_MEMORY", 8 * gibibyte),
                    static_cast<unsigned>(number("MOCK_CUDA_WORKERS", 1)), number("MOCK_CUDA_ORDER", 0)};
  }();
  return all;
}

void log(const char *format, ...) {
  if (settings().launches.empty()) return;
  static std::mutex one_line;
  std::lock_guard<std::mutex> guard(one_line);
  static FILE *file = fopen(settings().launches.c_str(), "a");
  if (!file) return;
  va_list arguments;
  va_start(arguments, format);
  vfprintf(file, format, arguments);
  va_end(arguments);
  fputc('\n', file);
  // Whoever reads the file may be in the middle of a test.
  fflush(file);
}

void complain(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("mock CUDA: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
}

}  // namespace mock
