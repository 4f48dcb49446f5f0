// Roofline ceilings of a GPU: copy bandwidth, FMA rates, L2 bandwidth, launch cost.
// CHAINS comes from peaks_cuda.py.

extern "C" __global__ void empty() {}

extern "C" __global__ void copy(const uint4* __restrict__ from, uint4* __restrict__ to,
                                long long vectors) {
  const long long stride = (long long)gridDim.x * blockDim.x;
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i + 3 * stride < vectors; i += 4 * stride) {
    const uint4 a = from[i], b = from[i + stride], c = from[i + 2 * stride],
                d = from[i + 3 * stride];
    to[i] = a;
    to[i + stride] = b;
    to[i + 2 * stride] = c;
    to[i + 3 * stride] = d;
  }
  for (; i < vectors; i += stride) to[i] = from[i];
}

// The same data again and again, past L1: it stays in L2.
extern "C" __global__ void copy_again(const uint4* from, uint4* to, long long vectors,
                                      int passes) {
  const long long stride = (long long)gridDim.x * blockDim.x;
  const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (int pass = 0; pass < passes; pass++) {
    for (long long i = first; i < vectors; i += stride) __stcg(to + i, __ldcg(from + i));
    asm volatile("" ::: "memory");
  }
}

template <typename T>
__device__ void fma_chains(T* out, int rounds) {
  T chains[CHAINS];
  const T factor = (T)0.999f, addend = (T)0.001f;
#pragma unroll
  for (int c = 0; c < CHAINS; c++) chains[c] = (T)(threadIdx.x + c);
#pragma unroll 8
  for (int r = 0; r < rounds; r++) {
#pragma unroll
    for (int c = 0; c < CHAINS; c++) chains[c] = chains[c] * factor + addend;
  }
  T sum = 0;
#pragma unroll
  for (int c = 0; c < CHAINS; c++) sum += chains[c];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void fma_float(float* out, int rounds) { fma_chains(out, rounds); }

extern "C" __global__ void fma_double(double* out, int rounds) { fma_chains(out, rounds); }
