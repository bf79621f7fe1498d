// cuBLAS and cuRAND for tests: the one matrix product that candle calls, and random numbers.
//
// A product is summed in f32, in an order that the length of the sum alone fixes. With MOCK_CUDA_SPLIT=1 it
// depends on the number of rows of the activations too: cuBLAS promises no more than that.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "memory.hpp"
#include "settings.hpp"

namespace {

enum BlasStatus { blas_success = 0, blas_invalid_value = 7, blas_not_supported = 15 };
enum DataType { type_f32 = 0, type_f16 = 2, type_bf16 = 14 };
constexpr int compute_f16 = 64;          // CUBLAS_COMPUTE_16F: alpha and beta are f16

using mock::Address;

// ---------------------------------------------------------------------------- elements
float load(const void *base, int type, size_t index) {
  if (type == type_f32) return static_cast<const float *>(base)[index];
  if (type == type_f16) return static_cast<float>(static_cast<const _Float16 *>(base)[index]);
  const uint32_t word = static_cast<uint32_t>(static_cast<const uint16_t *>(base)[index]) << 16;
  float value;
  memcpy(&value, &word, sizeof value);
  return value;
}

void store(void *base, int type, size_t index, float value) {
  if (type == type_f32) {
    static_cast<float *>(base)[index] = value;
  } else if (type == type_f16) {
    static_cast<_Float16 *>(base)[index] = static_cast<_Float16>(value);
  } else {
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    const bool nan = (word & 0x7fffffffu) > 0x7f800000u;
    static_cast<uint16_t *>(base)[index] =
        static_cast<uint16_t>(nan ? word >> 16 | 0x40u : (word + 0x7fffu + (word >> 16 & 1u)) >> 16);
  }
}

size_t size_of(int type) { return type == type_f32 ? 4 : 2; }
const char *name_of(int type) { return type == type_f32 ? "f32" : type == type_f16 ? "f16" : "bf16"; }

// ---------------------------------------------------------------------------- one matrix
// `rows` vectors of `length` elements each, wherever they lie: row r, element l at
// base[r * row_stride + l * element_stride].
struct Matrix {
  const void *base;
  int type;
  size_t row_stride, element_stride;

  // Row `row` as f32 side by side, in `room` unless it already is so.
  const float *row(size_t row, size_t length, float *room) const {
    if (type == type_f32 && element_stride == 1) return static_cast<const float *>(base) + row * row_stride;
    for (size_t l = 0; l < length; l++) room[l] = load(base, type, row * row_stride + l * element_stride);
    return room;
  }
};

// ---------------------------------------------------------------------------- sums
constexpr size_t lanes = 8;
typedef float Lanes __attribute__((vector_size(lanes * sizeof(float))));

// The sum of products of [from, to): eight running sums, added as a tree.
float sum_of_products(const float *a, const float *b, size_t from, size_t to) {
  Lanes sums = {};
  size_t l = from;
  for (; l + lanes <= to; l += lanes) {
    Lanes x, y;
    memcpy(&x, a + l, sizeof x);
    memcpy(&y, b + l, sizeof y);
    sums += x * y;
  }
  float tail = 0;
  for (; l < to; l++) tail += a[l] * b[l];
  return (((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))) + tail;
}

float dot(const float *a, const float *b, size_t length, size_t parts) {
  float total = 0;
  for (size_t part = 0; part < parts; part++)
    total += sum_of_products(a, b, length * part / parts, length * (part + 1) / parts);
  return total;
}

// candle's row-major product of activations and weights is this column-major product of weights and
// activations: its n is the number of activation rows.
size_t parts_for(int activation_rows) {
  if (!mock::settings().split) return 1;
  constexpr int different = 7;
  return static_cast<size_t>((activation_rows - 1) % different + 1);
}

// The last element that a batch of strided vectors reaches, in elements, and one.
size_t reach(const Matrix &matrix, size_t rows, size_t length, long long stride, int batch) {
  return static_cast<size_t>(batch - 1) * static_cast<size_t>(stride) + (rows - 1) * matrix.row_stride +
         (length - 1) * matrix.element_stride + 1;
}

bool within_memory(const Matrix &matrix, size_t rows, size_t length, long long stride, int batch, const char *name) {
  return mock::holds(reinterpret_cast<Address>(matrix.base), reach(matrix, rows, length, stride, batch) * size_of(matrix.type),
                     name);
}

const void *advanced(const void *base, int type, long long elements) {
  return static_cast<const char *>(base) + elements * static_cast<long long>(size_of(type));
}

struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // In (0, 1], as cuRAND's.
  double uniform() { return (static_cast<double>(next() >> 11) + 1) * 0x1p-53; }
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform()); }
};

template <class T, class Draw>
int generate(T *out, size_t count, Draw draw) {
  constexpr int launch_failure = 201;
  if (!mock::holds(reinterpret_cast<Address>(out), count * sizeof(T), "random numbers")) return launch_failure;
  for (size_t i = 0; i < count; i++) out[i] = static_cast<T>(draw());
  return 0;
}

char blas_handle;

}  // namespace

extern "C" {

int cublasCreate_v2(void **handle) { return *handle = &blas_handle, blas_success; }
int cublasDestroy_v2(void *) { return blas_success; }
int cublasSetStream_v2(void *, void *) { return blas_success; }
int cublasSetMathMode(void *, int) { return blas_success; }
int cublasSetPointerMode_v2(void *, int) { return blas_success; }
int cublasGetPointerMode_v2(void *, int *mode) { return *mode = 0, blas_success; }

// Column-major C = alpha op(A) op(B) + beta C, `batch` times.
int cublasGemmStridedBatchedEx(void *, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha_at,
                               const void *a_at, int a_type, int lda, long long a_stride, const void *b_at, int b_type,
                               int ldb, long long b_stride, const void *beta_at, void *c_at, int c_type, int ldc,
                               long long c_stride, int batch, int compute, int) {
  mock::log("gemm m %d n %d k %d batch %d type %s", m, n, k, batch, name_of(a_type));
  for (int type : {a_type, b_type, c_type})
    if (type != type_f32 && type != type_f16 && type != type_bf16) return blas_not_supported;
  if (m < 0 || n < 0 || k < 0 || batch < 0) return blas_invalid_value;
  if (m == 0 || n == 0 || batch == 0) return blas_success;
  const int scalar_type = compute == compute_f16 ? type_f16 : type_f32;
  const float alpha = load(alpha_at, scalar_type, 0), beta = load(beta_at, scalar_type, 0);
  const size_t features = static_cast<size_t>(m), activations = static_cast<size_t>(n), length = static_cast<size_t>(k);
  // A's rows are the m features, B's rows the n activations, both along k.
  Matrix a{a_at, a_type, transpose_a ? static_cast<size_t>(lda) : 1, transpose_a ? 1 : static_cast<size_t>(lda)};
  Matrix b{b_at, b_type, transpose_b ? 1 : static_cast<size_t>(ldb), transpose_b ? static_cast<size_t>(ldb) : 1};
  const Matrix c{c_at, c_type, static_cast<size_t>(ldc), 1};
  if (length > 0 && !within_memory(a, features, length, a_stride, batch, "the first matrix of a product")) return blas_invalid_value;
  if (length > 0 && !within_memory(b, activations, length, b_stride, batch, "the second matrix of a product")) return blas_invalid_value;
  if (!within_memory(c, activations, features, c_stride, batch, "the result of a product")) return blas_invalid_value;

  const size_t parts = parts_for(n);
  std::vector<float> feature_room(length), activation_room(length * activations);
  std::vector<const float *> activation(activations);
  for (int product = 0; product < batch; product++) {
    for (size_t j = 0; j < activations; j++) activation[j] = b.row(j, length, activation_room.data() + j * length);
    for (size_t i = 0; i < features; i++) {
      const float *feature = a.row(i, length, feature_room.data());
      for (size_t j = 0; j < activations; j++) {
        const size_t place = static_cast<size_t>(product) * static_cast<size_t>(c_stride) + j * c.row_stride + i;
        const float added = beta != 0 ? beta * load(c_at, c_type, place) : 0;
        store(c_at, c_type, place, alpha * dot(feature, activation[j], length, parts) + added);
      }
    }
    a.base = advanced(a.base, a_type, a_stride);
    b.base = advanced(b.base, b_type, b_stride);
  }
  return blas_success;
}

int curandCreateGenerator(void **generator, int) { return *generator = new Random{0}, 0; }
int curandDestroyGenerator(void *generator) { return delete static_cast<Random *>(generator), 0; }
int curandSetPseudoRandomGeneratorSeed(void *generator, unsigned long long seed) {
  static_cast<Random *>(generator)->state = seed;
  return 0;
}
int curandSetStream(void *, void *) { return 0; }
int curandSetGeneratorOffset(void *, unsigned long long) { return 0; }
int curandGenerateUniform(void *generator, float *out, size_t count) {
  return generate(out, count, [=] { return static_cast<Random *>(generator)->uniform(); });
}
int curandGenerateUniformDouble(void *generator, double *out, size_t count) {
  return generate(out, count, [=] { return static_cast<Random *>(generator)->uniform(); });
}
int curandGenerateNormal(void *generator, float *out, size_t count, float mean, float deviation) {
  return generate(out, count, [=] { return mean + deviation * static_cast<Random *>(generator)->normal(); });
}
int curandGenerateNormalDouble(void *generator, double *out, size_t count, double mean, double deviation) {
  return generate(out, count, [=] { return mean + deviation * static_cast<Random *>(generator)->normal(); });
}

}  // extern "C"
