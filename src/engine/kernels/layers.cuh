// What a transformer layer does between its matrix products, on the rows of many sequences at once.
//
// Portable CUDA C++: nvcc makes the PTX beside this file, and g++ compiles it for the tests with
// the emulator's header. A row's result depends on the row and its own sequence only: how work is
// cut and in which order sums run follows from the width of a row and its position, never from
// the number of rows, the slot of a row or the launch. Arithmetic is f32; storage is f32 or bf16.
// The matrix products are not here: they are cuBLAS's.
#ifndef GREENMARK_LAYERS_CUH
#define GREENMARK_LAYERS_CUH

#ifdef GREENMARK_EMULATOR
#include "cuda_emulator.hpp"
#else
#include <cstdint>
#endif

namespace layers {

// Threads of a block that attends: one per position of a tile.
constexpr uint32_t TILE = 128;

// Largest head the attention has room for; `cuda/mod.rs` refuses larger ones.
constexpr uint32_t LARGEST_HEAD = 256;

// Positions whose keys are interleaved, so that the lanes of a warp read neighbours.
constexpr uint32_t LANES = 32;

constexpr uint32_t WHOLE_WARP = 0xffffffffu;

// A bfloat16 without the vendor's headers.
struct Bf16 {
  uint16_t bits;
};

__device__ __forceinline__ float load(const float *place) { return *place; }

__device__ __forceinline__ float load(const Bf16 *place) {
  return __uint_as_float(static_cast<uint32_t>(place->bits) << 16);
}

__device__ __forceinline__ void store(float *place, float value) { *place = value; }

// Rounds to nearest, ties to even.
__device__ __forceinline__ void store(Bf16 *place, float value) {
  const uint32_t bits = __float_as_uint(value);
  // Rounding up would turn some NaN into infinity, and the fault would be lost.
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const uint32_t rounded = nan ? bits | 0x00400000u : bits + 0x7fffu + ((bits >> 16) & 1u);
  place->bits = static_cast<uint16_t>(rounded >> 16);
}

// Where a row's keys and values are; `cuda/cache.rs` writes the same three words.
struct Place {
  // Address of the sequence's cache; 0 for a row that fills up a fixed batch.
  uint64_t cache;
  // Positions the cache has room for: a multiple of LANES.
  uint64_t capacity;
  // Position of the row in its sequence.
  uint64_t position;
};

// Keys of a layer: [kv head][position / LANES][dim][position % LANES].
// Values of a layer: [kv head][position][dim]. Layers follow each other, keys first.
template <class T>
__device__ __forceinline__ T *layer_keys(const Place &place, uint64_t layer, uint32_t kv_heads, uint32_t dim) {
  return reinterpret_cast<T *>(place.cache) + 2 * layer * kv_heads * place.capacity * dim;
}

template <class T>
__device__ __forceinline__ T *layer_values(const Place &place, uint64_t layer, uint32_t kv_heads, uint32_t dim) {
  return layer_keys<T>(place, layer, kv_heads, dim) + kv_heads * place.capacity * dim;
}

__device__ __forceinline__ uint64_t thread_index() {
  return static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

struct Sum {
  static __device__ __forceinline__ float join(float a, float b) { return a + b; }
};

struct Maximum {
  static __device__ __forceinline__ float join(float a, float b) { return fmaxf(a, b); }
};

// The same result in every thread: a tree over each warp, then the warps in their order.
// `slots` holds one value per warp and may be used again when this returns.
template <class Join>
__device__ float across_block(float value, float *slots) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = Join::join(value, __shfl_xor_sync(WHOLE_WARP, value, distance));
  }
  if (threadIdx.x % 32 == 0) {
    slots[threadIdx.x / 32] = value;
  }
  __syncthreads();
  float result = slots[0];
  for (uint32_t warp = 1; warp < blockDim.x / 32; warp++) {
    result = Join::join(result, slots[warp]);
  }
  __syncthreads();
  return result;
}

// One block per piece of `width` elements: a whole row, or one head of it. The host chooses the
// size of the block by the width alone.
template <class T>
__device__ void rms_norm(const T *xs, const float *weight, T *out, uint32_t width, float eps) {
  __shared__ float slots[32];
  const uint64_t first = static_cast<uint64_t>(blockIdx.x) * width;
  float squares = 0.0f;
  for (uint32_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float x = load(xs + first + i);
    squares = fmaf(x, x, squares);
  }
  squares = across_block<Sum>(squares, slots);
  const float scale = 1.0f / sqrtf(squares / static_cast<float>(width) + eps);
  for (uint32_t i = threadIdx.x; i < width; i += blockDim.x) {
    store(out + first + i, load(xs + first + i) * scale * weight[i]);
  }
}

// One thread per pair of elements. `turns` holds the cosines of every row, then the sines.
// `neighbours` pairs element 2i with 2i + 1, else i goes with i + half.
template <class T>
__device__ void rotate(T *xs, const float *turns, uint64_t rows, uint32_t heads, uint32_t half, uint32_t neighbours) {
  const uint64_t index = thread_index();
  if (index >= rows * heads * half) {
    return;
  }
  const uint32_t pair = static_cast<uint32_t>(index % half);
  const uint64_t head = index / half;
  const uint64_t turn = head / heads * half + pair;
  const float cosine = turns[turn];
  const float sine = turns[rows * half + turn];
  T *first = xs + head * 2 * half + (neighbours ? 2 * pair : pair);
  T *second = first + (neighbours ? 1 : half);
  const float a = load(first);
  const float b = load(second);
  store(first, a * cosine - b * sine);
  store(second, b * cosine + a * sine);
}

template <class T>
__device__ void silu_mul(T *gate, const T *up, uint64_t count) {
  const uint64_t index = thread_index();
  if (index < count) {
    const float x = load(gate + index);
    store(gate + index, x / (1.0f + expf(-x)) * load(up + index));
  }
}

template <class T>
__device__ void add(T *xs, const T *ys, uint64_t count) {
  const uint64_t index = thread_index();
  if (index < count) {
    store(xs + index, load(xs + index) + load(ys + index));
  }
}

template <class T>
__device__ void add_bias(T *xs, const float *bias, uint64_t count, uint32_t width) {
  const uint64_t index = thread_index();
  if (index < count) {
    store(xs + index, load(xs + index) + bias[index % width]);
  }
}

// One block per row: its keys and values enter the cache of its sequence at its own position.
template <class T>
__device__ void append(const T *keys, const T *values, const Place *places, uint64_t layer, uint32_t kv_heads,
                       uint32_t dim) {
  const Place place = places[blockIdx.x];
  if (place.cache == 0) {
    return;
  }
  T *cached_keys = layer_keys<T>(place, layer, kv_heads, dim);
  T *cached_values = layer_values<T>(place, layer, kv_heads, dim);
  const uint32_t width = kv_heads * dim;
  const uint64_t row = static_cast<uint64_t>(blockIdx.x) * width;
  for (uint32_t i = threadIdx.x; i < width; i += blockDim.x) {
    const uint64_t head = i / dim * place.capacity * dim;
    const uint32_t d = i % dim;
    const uint64_t key = (place.position / LANES * dim + d) * LANES + place.position % LANES;
    cached_keys[head + key] = keys[row + i];
    cached_values[head + place.position * dim + d] = values[row + i];
  }
}

// The score of one position. Four sums hide the latency of an addition.
template <class T>
__device__ __forceinline__ float dot(const float *query, const T *key, uint32_t dim) {
  float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  uint32_t d = 0;
  for (; d + 4 <= dim; d += 4) {
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
      sums[i] = fmaf(query[d + i], load(key + static_cast<uint64_t>(d + i) * LANES), sums[i]);
    }
  }
  for (; d < dim; d++) {
    sums[0] = fmaf(query[d], load(key + static_cast<uint64_t>(d) * LANES), sums[0]);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// One block per row and query head, causal over the cache of the row's own sequence.
//
// Softmax runs over tiles of TILE positions that start at multiples of TILE, so the order of
// every sum follows from the row's position, and shared memory does not grow with the length.
// `window` is the number of latest positions a row sees, its own included; 0: all.
template <class T>
__device__ void attend(const T *queries, T *out, const Place *places, uint64_t layer, uint32_t query_heads,
                       uint32_t kv_heads, uint32_t dim, uint64_t window, float scale) {
  __shared__ float query[LARGEST_HEAD];
  __shared__ float weights[TILE];
  __shared__ float sums[LARGEST_HEAD];
  __shared__ float slots[TILE / 32];
  const uint32_t thread = threadIdx.x;
  const uint32_t row = blockIdx.x / query_heads;
  const uint32_t head = blockIdx.x % query_heads;
  const uint64_t own = (static_cast<uint64_t>(row) * query_heads + head) * dim;
  const Place place = places[row];
  if (place.cache == 0) {
    for (uint32_t d = thread; d < dim; d += TILE) {
      store(out + own + d, 0.0f);
    }
    return;
  }
  for (uint32_t d = thread; d < dim; d += TILE) {
    query[d] = load(queries + own + d);
  }
  __syncthreads();
  const uint64_t kv_head = head / (query_heads / kv_heads) * place.capacity * dim;
  const T *keys = layer_keys<T>(place, layer, kv_heads, dim) + kv_head;
  const T *values = layer_values<T>(place, layer, kv_heads, dim) + kv_head;
  const uint64_t position = place.position;
  const uint64_t first = window != 0 && position + 1 > window ? position + 1 - window : 0;

  // For the values, a thread is an element of the head, or two of a large one. Of a small head
  // there are several groups of threads, and each takes every groups-th position of a tile.
  const uint32_t groups = dim < TILE ? TILE / dim : 1;
  const uint32_t group = dim < TILE ? thread / dim : 0;
  const uint32_t element = dim < TILE ? thread % dim : thread;
  const bool adds = group < groups;
  float mixed[LARGEST_HEAD / TILE] = {0.0f, 0.0f};
  float maximum = -INFINITY;
  float total = 0.0f;
  for (uint64_t start = first / TILE * TILE; start <= position; start += TILE) {
    const uint64_t place_of_thread = start + thread;
    const bool seen = place_of_thread >= first && place_of_thread <= position;
    float score = -INFINITY;
    if (seen) {
      const T *key = keys + place_of_thread / LANES * dim * LANES + place_of_thread % LANES;
      score = dot(query, key, dim) * scale;
    }
    const float higher = fmaxf(maximum, across_block<Maximum>(score, slots));
    const float shrink = expf(maximum - higher);
    const float weight = seen ? expf(score - higher) : 0.0f;
    maximum = higher;
    weights[thread] = weight;
    // The barriers inside also publish the weights.
    total = total * shrink + across_block<Sum>(weight, slots);
    const uint32_t from = first > start ? static_cast<uint32_t>(first - start) : 0;
    const uint32_t end = position - start < TILE ? static_cast<uint32_t>(position - start) + 1 : TILE;
    const uint32_t skipped = from > group ? (from - group + groups - 1) / groups * groups : 0;
#pragma unroll
    for (uint32_t part = 0; part < LARGEST_HEAD / TILE; part++) {
      const uint32_t d = element + part * TILE;
      if (adds && d < dim) {
        float sum = mixed[part] * shrink;
        for (uint32_t i = group + skipped; i < end; i += groups) {
          sum = fmaf(weights[i], load(values + (start + i) * dim + d), sum);
        }
        mixed[part] = sum;
      }
    }
  }
#pragma unroll
  for (uint32_t part = 0; part < LARGEST_HEAD / TILE; part++) {
    const uint32_t d = element + part * TILE;
    if (adds && d < dim) {
      sums[group * dim + d] = mixed[part];
    }
  }
  __syncthreads();
  for (uint32_t d = thread; d < dim; d += TILE) {
    float sum = sums[d];
    for (uint32_t other = 1; other < groups; other++) {
      sum += sums[other * dim + d];
    }
    store(out + own + d, sum / total);
  }
}

}  // namespace layers

// The largest block of each kernel is part of its declaration: the host launches no larger one.
extern "C" __global__ void __launch_bounds__(256)
    gm_rms_norm_f32(const float *xs, const float *weight, float *out, uint32_t width, float eps) {
  layers::rms_norm(xs, weight, out, width, eps);
}

extern "C" __global__ void __launch_bounds__(256)
    gm_rms_norm_bf16(const layers::Bf16 *xs, const float *weight, layers::Bf16 *out, uint32_t width, float eps) {
  layers::rms_norm(xs, weight, out, width, eps);
}

extern "C" __global__ void __launch_bounds__(256)
    gm_rotate_f32(float *xs, const float *turns, uint64_t rows, uint32_t heads, uint32_t half, uint32_t neighbours) {
  layers::rotate(xs, turns, rows, heads, half, neighbours);
}

extern "C" __global__ void __launch_bounds__(256)
    gm_rotate_bf16(layers::Bf16 *xs, const float *turns, uint64_t rows, uint32_t heads, uint32_t half,
                   uint32_t neighbours) {
  layers::rotate(xs, turns, rows, heads, half, neighbours);
}

extern "C" __global__ void __launch_bounds__(256) gm_silu_mul_f32(float *gate, const float *up, uint64_t count) {
  layers::silu_mul(gate, up, count);
}

extern "C" __global__ void __launch_bounds__(256)
    gm_silu_mul_bf16(layers::Bf16 *gate, const layers::Bf16 *up, uint64_t count) {
  layers::silu_mul(gate, up, count);
}

extern "C" __global__ void __launch_bounds__(256) gm_add_f32(float *xs, const float *ys, uint64_t count) {
  layers::add(xs, ys, count);
}

extern "C" __global__ void __launch_bounds__(256)
    gm_add_bf16(layers::Bf16 *xs, const layers::Bf16 *ys, uint64_t count) {
  layers::add(xs, ys, count);
}

extern "C" __global__ void __launch_bounds__(256)
    gm_add_bias_f32(float *xs, const float *bias, uint64_t count, uint32_t width) {
  layers::add_bias(xs, bias, count, width);
}

extern "C" __global__ void __launch_bounds__(256)
    gm_add_bias_bf16(layers::Bf16 *xs, const float *bias, uint64_t count, uint32_t width) {
  layers::add_bias(xs, bias, count, width);
}

extern "C" __global__ void __launch_bounds__(256)
    gm_append_f32(const float *keys, const float *values, const layers::Place *places, uint64_t layer,
                  uint32_t kv_heads, uint32_t dim) {
  layers::append(keys, values, places, layer, kv_heads, dim);
}

extern "C" __global__ void __launch_bounds__(256)
    gm_append_bf16(const layers::Bf16 *keys, const layers::Bf16 *values, const layers::Place *places, uint64_t layer,
                   uint32_t kv_heads, uint32_t dim) {
  layers::append(keys, values, places, layer, kv_heads, dim);
}

extern "C" __global__ void __launch_bounds__(layers::TILE)
    gm_attend_f32(const float *queries, float *out, const layers::Place *places, uint64_t layer, uint32_t query_heads,
                  uint32_t kv_heads, uint32_t dim, uint64_t window, float scale) {
  layers::attend(queries, out, places, layer, query_heads, kv_heads, dim, window, scale);
}

extern "C" __global__ void __launch_bounds__(layers::TILE)
    gm_attend_bf16(const layers::Bf16 *queries, layers::Bf16 *out, const layers::Place *places, uint64_t layer,
                   uint32_t query_heads, uint32_t kv_heads, uint32_t dim, uint64_t window, float scale) {
  layers::attend(queries, out, places, layer, query_heads, kv_heads, dim, window, scale);
}

#endif  // GREENMARK_LAYERS_CUH
