// Kernels whose difference in energy is known beforehand in kind, for benchmarks/energy/h200.py.

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

extern "C" __global__ void fma_loop(float* out, int rounds) {
  float chains[8];
#pragma unroll
  for (int c = 0; c < 8; c++) chains[c] = (float)(threadIdx.x + c);
#pragma unroll 8
  for (int r = 0; r < rounds; r++) {
#pragma unroll
    for (int c = 0; c < 8; c++) chains[c] = chains[c] * 0.999f + 0.001f;
  }
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < 8; c++) sum += chains[c];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// x / (x + 1) a few times per element; memory-bound, so that both forms take the same time.
template <bool FAST>
__device__ void divide(const float4* __restrict__ from, float4* __restrict__ to, long long vectors) {
  const long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += stride) {
    float4 v = from[i];
    float* x = &v.x;
#pragma unroll
    for (int k = 0; k < 4; k++) {
#pragma unroll
      for (int r = 0; r < 4; r++) x[k] = FAST ? __fdividef(x[k], x[k] + 1.0f) : x[k] / (x[k] + 1.0f);
    }
    to[i] = v;
  }
}

extern "C" __global__ void divide_ieee(const float4* from, float4* to, long long vectors) {
  divide<false>(from, to, vectors);
}

extern "C" __global__ void divide_fast(const float4* from, float4* to, long long vectors) {
  divide<true>(from, to, vectors);
}
