// Device memory of the mock driver: blocks of the host's heap, each of exactly the size asked for, so that
// AddressSanitizer sees an access beyond it. Copies and fills are checked against the blocks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mock {

using Address = unsigned long long;

// Null when the device's memory is used up. Holds no zeros.
void *allocate(size_t bytes);
// Whether there was such a block.
bool release(Address start);
size_t bytes_in_use();
// Whether a block holds all of these bytes; complains otherwise.
bool holds(Address start, size_t bytes, const char *operation);

}  // namespace mock
