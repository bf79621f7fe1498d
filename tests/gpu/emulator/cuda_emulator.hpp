// The vocabulary of CUDA C++ for g++, so that a kernel written for the GPU runs on the CPU, for tests.
//
// What it is for: the arithmetic and the logic of a kernel, bit for bit, and its synchronisation. Every
// thread of a block is a fiber of its own (see scheduler.hpp). Built with -fsanitize=thread a missing
// barrier is reported as a data race; built with -fsanitize=address an access beyond an array is reported.
//
// What it is not: it says nothing about time, and it has no tensor cores, no asynchronous copies, no
// cooperative grids and no device libm (sinf, expf and so on are those of the host, with other bits).
// A kernel that spins until another thread of its warp or block writes never returns.
//
// Compile with -ffp-contract=off, as `nvcc -fmad=false` compiles for the GPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "scheduler.hpp"

// ---------------------------------------------------------------------------- qualifiers
// `__global__` may be defined beforehand: the mock's build script looks for it in preprocessed text.
#ifndef __global__
#define __global__
#endif
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __constant__ static const

// One block at a time runs on an OS thread, so a variable of the thread is a variable of the block.
#if defined(EMULATOR_ADDRESS_SANITIZER)
// An ordinary variable, because only those get guard bytes on both sides. Blocks run one by one (scheduler.hpp).
#define __shared__ static
#elif defined(EMULATOR_FOREIGN_KERNELS)
// g++ refuses a section for a variable of an inline function; kernels that have such ones go without the poison.
#define __shared__ static thread_local
#else
// The section tells the scheduler which bytes to poison before each block.
#define __shared__ static thread_local __attribute__((section("emulator_shared")))
#endif

// ---------------------------------------------------------------------------- vector types
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) ulonglong2 { unsigned long long x, y; };
struct alignas(4) char4 { signed char x, y, z, w; };
struct alignas(4) uchar4 { unsigned char x, y, z, w; };

inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }

// ---------------------------------------------------------------------------- built-in variables
#define threadIdx (emulator::running.thread_index)
#define blockIdx (emulator::running.block_index)
#define blockDim (emulator::running.block_dim)
#define gridDim (emulator::running.grid_dim)
#define warpSize 32

using std::max;
using std::min;

#include "atomics.hpp"
#include "collectives.hpp"
#include "intrinsics.hpp"
