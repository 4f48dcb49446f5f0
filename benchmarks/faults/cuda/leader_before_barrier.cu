/*
{"fault": "barrier_stall", "severity": "mild", "also": ["warp_divergence"],
 "grid": [1056], "block": [256],
 "args": [{"f32": 17301504, "fill": "random"}, {"f32": 17301504}, {"int": 64}]}
One warp computes the scale of each tile while the others wait at the barrier.
*/
extern "C" __global__ void leader_before_barrier(const float* __restrict__ x, float* __restrict__ y, int tiles) {
  __shared__ float scale;
  for (int t = 0; t < tiles; ++t) {
    long base = ((long)blockIdx.x * tiles + t) * 256;
    if (threadIdx.x < 32) {
      float s = 0.0f;
      for (int k = threadIdx.x; k < 256; k += 32) s += x[base + k] * x[base + k];
      for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
      for (int k = 0; k < 20; ++k) s = sqrtf(s + 1.0f);
      if (threadIdx.x == 0) scale = 1.0f / s;
    }
    __syncthreads();
    y[base + threadIdx.x] = x[base + threadIdx.x] * scale;
    __syncthreads();
  }
}
