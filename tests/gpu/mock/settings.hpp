// What the environment asks of the mock driver. Read once.
//
//   MOCK_CUDA_SPLIT=1        matrix products are summed in a number of parts that depends on the number of
//                            rows of the activations, as cuBLAS may do: results depend on the batch's shape
//   MOCK_CUDA_LAUNCHES=FILE  one line is added to FILE for every launch, copy, fill and matrix product
//   MOCK_CUDA_MEMORY=BYTES   the device's memory (8 GiB)
//   MOCK_CUDA_WORKERS=N      OS threads that run the blocks of a launch (1)
//   MOCK_CUDA_ORDER=SEED     blocks and threads run in a random order (0: in order)
#pragma once

#include <cstdint>
#include <string>

namespace mock {

struct Settings {
  bool split;
  std::string launches;
  uint64_t memory;
  unsigned workers;
  uint64_t order_seed;
};

const Settings &settings();

// Adds a line to the file of launches, if there is one. Printf style, without a newline.
void log(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Says on stderr what a caller did wrong.
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace mock
