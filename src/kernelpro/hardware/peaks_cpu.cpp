// Roofline ceilings of a CPU: copy bandwidth, FMA rate, cache bandwidth, parallel-region cost.
// VECTOR_BYTES and CHAINS come from peaks_cpu.py.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <omp.h>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#define OPAQUE "+x"
#else
#define OPAQUE "+w"
#endif

namespace {

typedef float FloatVector __attribute__((vector_size(VECTOR_BYTES)));
typedef double DoubleVector __attribute__((vector_size(VECTOR_BYTES)));

struct Buffers {
  char* from;
  char* to;
};

void store_streaming(char* to, const char* from, int64_t bytes) {
#if defined(__AVX512F__)
  for (int64_t i = 0; i < bytes; i += 64)
    _mm512_stream_si512((__m512i*)(to + i), _mm512_load_si512((const void*)(from + i)));
  _mm_sfence();
#elif defined(__AVX__)
  for (int64_t i = 0; i < bytes; i += 32)
    _mm256_stream_si256((__m256i*)(to + i), _mm256_load_si256((const __m256i*)(from + i)));
  _mm_sfence();
#elif defined(__SSE2__)
  for (int64_t i = 0; i < bytes; i += 16)
    _mm_stream_si128((__m128i*)(to + i), _mm_load_si128((const __m128i*)(from + i)));
  _mm_sfence();
#else
  std::memcpy(to, from, bytes);
#endif
}

// A plain vector loop: memcpy would switch to streaming stores by itself above a threshold.
void store_normal(char* to, const char* from, int64_t bytes) {
  const FloatVector* source = (const FloatVector*)from;
  FloatVector* target = (FloatVector*)to;
  const int64_t count = bytes / (int64_t)sizeof(FloatVector);
  for (int64_t i = 0; i < count; i++) {
    FloatVector value = source[i];
    asm volatile("" : OPAQUE(value));
    target[i] = value;
  }
}

// Bytes [begin, end) of thread `me` of `threads`, in whole cache lines.
void share(int64_t bytes, int me, int threads, int64_t* begin, int64_t* end) {
  const int64_t lines = bytes / 64;
  *begin = lines * me / threads * 64;
  *end = lines * (me + 1) / threads * 64;
}

template <typename Vector, typename Scalar>
double multiply_adds(int64_t rounds, Scalar seed) {
  Vector chains[CHAINS];
  for (int c = 0; c < CHAINS; c++) chains[c] = Vector{} + (Scalar)(seed + c);
  const Vector factor = Vector{} + (Scalar)(seed * 0 + 0.999);
  const Vector addend = Vector{} + (Scalar)(seed * 0 + 0.001);
  for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 64
    for (int c = 0; c < CHAINS; c++) chains[c] = chains[c] * factor + addend;
  }
  Vector sum = chains[0];
  for (int c = 1; c < CHAINS; c++) sum += chains[c];
  return (double)sum[0];
}

template <typename Vector, typename Scalar>
double flops_per_second(int threads, double seconds, int repeats) {
  const double lanes = sizeof(Vector) / sizeof(Scalar);
  const double flops_a_round = 2.0 * CHAINS * lanes;
  volatile double sink = 0;
  int64_t rounds = 20000;
  double best = 0;
  for (int repeat = 0; repeat <= repeats; repeat++) {  // the first one sizes the others
    double start = 0, stop = 0;
#pragma omp parallel num_threads(threads)
    {
#pragma omp barrier
#pragma omp master
      start = omp_get_wtime();
      const double result = multiply_adds<Vector, Scalar>(rounds, (Scalar)1.0);
#pragma omp critical
      sink = sink + result;
#pragma omp barrier
#pragma omp master
      stop = omp_get_wtime();
    }
    const double elapsed = std::max(stop - start, 1e-9);
    if (repeat > 0) best = std::max(best, flops_a_round * rounds * threads / elapsed);
    rounds = std::max<int64_t>(1000, (int64_t)(rounds * (seconds / elapsed)));
  }
  return best;
}

}  // namespace

extern "C" {

// Two page-touched buffers, spread over the threads' memory nodes; null if there is no memory.
void* allocate_buffers(int64_t bytes, int threads) {
  Buffers* buffers = new Buffers{};
  buffers->from = (char*)std::aligned_alloc(4096, bytes);
  buffers->to = (char*)std::aligned_alloc(4096, bytes);
  if (!buffers->from || !buffers->to) {
    std::free(buffers->from);
    std::free(buffers->to);
    delete buffers;
    return nullptr;
  }
#pragma omp parallel num_threads(threads)
  {
    int64_t begin, end;
    share(bytes, omp_get_thread_num(), omp_get_num_threads(), &begin, &end);
    std::memset(buffers->from + begin, 1, end - begin);
    std::memset(buffers->to + begin, 2, end - begin);
  }
  return buffers;
}

void free_buffers(void* handle) {
  Buffers* buffers = (Buffers*)handle;
  std::free(buffers->from);
  std::free(buffers->to);
  delete buffers;
}

// Best read-plus-write rate of a copy of `bytes`, in 1e9 bytes per second.
double copy_gb_s(void* handle, int64_t bytes, int threads, int streaming, int repeats) {
  Buffers* buffers = (Buffers*)handle;
  double best = 0;
  for (int repeat = 0; repeat < repeats; repeat++) {
    const double start = omp_get_wtime();
#pragma omp parallel num_threads(threads)
    {
      int64_t begin, end;
      share(bytes, omp_get_thread_num(), omp_get_num_threads(), &begin, &end);
      if (streaming)
        store_streaming(buffers->to + begin, buffers->from + begin, end - begin);
      else
        store_normal(buffers->to + begin, buffers->from + begin, end - begin);
    }
    best = std::max(best, 2.0 * bytes / (omp_get_wtime() - start) / 1e9);
  }
  return best;
}

// Read-plus-write rate of all threads together, each copying `bytes` that stay in its own cache.
double cache_gb_s(int threads, int64_t bytes, double seconds) {
  double total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : total)
  {
    char* from = (char*)std::aligned_alloc(4096, bytes);
    char* to = (char*)std::aligned_alloc(4096, bytes);
    std::memset(from, 1, bytes);
    std::memset(to, 2, bytes);
    double best = 0;
#pragma omp barrier
    const double stop = omp_get_wtime() + seconds;
    while (omp_get_wtime() < stop) {
      const int passes = 32;
      const double start = omp_get_wtime();
      for (int pass = 0; pass < passes; pass++) store_normal(to, from, bytes);
      best = std::max(best, 2.0 * bytes * passes / (omp_get_wtime() - start) / 1e9);
    }
    total += best;
    std::free(from);
    std::free(to);
  }
  return total;
}

double flops_float(int threads, double seconds, int repeats) {
  return flops_per_second<FloatVector, float>(threads, seconds, repeats);
}

double flops_double(int threads, double seconds, int repeats) {
  return flops_per_second<DoubleVector, double>(threads, seconds, repeats);
}

// Median cost of entering and leaving an empty parallel region, in microseconds.
double parallel_region_us(int threads, int count) {
  std::vector<double> samples(count);
  for (double& sample : samples) {
    const double start = omp_get_wtime();
#pragma omp parallel num_threads(threads)
    asm volatile("" ::: "memory");
    sample = omp_get_wtime() - start;
  }
  std::nth_element(samples.begin(), samples.begin() + count / 2, samples.end());
  return samples[count / 2] * 1e6;
}

}  // extern "C"
