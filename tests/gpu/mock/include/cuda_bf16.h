// In place of the header of CUDA with this name.
#include "device_types.hpp"
