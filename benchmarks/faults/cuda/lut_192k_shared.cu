/*
{"fault": "occupancy_limiter", "severity": "severe", "also": [],
 "grid": [132], "block": [128], "shared": 196608,
 "args": [{"f32": 49152, "fill": "random"}, {"f32": 67108864, "fill": "random"}, {"f32": 67108864}, {"int": 67108864}]}
A 192 KiB lookup table in shared memory leaves room for one block of four warps an SM.
*/
extern "C" __global__ void lut_192k_shared(const float* __restrict__ table, const float* __restrict__ x,
                                           float* __restrict__ y, int n) {
  extern __shared__ float lut[];
  for (int i = threadIdx.x; i < 49152; i += blockDim.x) lut[i] = table[i];
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = lut[(i + (int)(x[i] * 64.0f) * 32) % 49152];
}
