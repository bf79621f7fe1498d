// What lets one source be compiled by nvcc for the device and by g++ for tests.
//
// Under GREENMARK_EMULATOR the header of tests/gpu/emulator supplies the language of CUDA. Both
// compilers are told not to fuse multiplications with additions, so every float operation here
// rounds once, and the same source gives the same bits on the device, in the emulator and in the
// chain of src/sample, whose arithmetic it repeats.
#ifndef GM_PORTABLE_CUH
#define GM_PORTABLE_CUH

#include <stdint.h>

#ifdef GREENMARK_EMULATOR
#include "cuda_emulator.hpp"
#endif

#define GM_DEVICE __device__ __forceinline__
// What one block does at the end of a row is called, not copied into the loops over all tokens:
// those keep their registers, and the kernels stay small.
#ifdef GREENMARK_EMULATOR
#define GM_CALLED static __attribute__((noinline))
#else
#define GM_CALLED static __device__ __noinline__
#endif

#define GM_FULL_WARP 0xffffffffu
#define GM_NEGATIVE_INFINITY __uint_as_float(0xff800000u)

// CUDA's 64-bit atomics name another type of the same size.
GM_DEVICE void gm_atomic_add(uint64_t *place, uint64_t value) {
  atomicAdd((unsigned long long *)place, (unsigned long long)value);
}

#endif
