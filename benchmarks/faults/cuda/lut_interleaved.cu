/*
{"fault": "shared_bank_conflicts", "severity": "severe", "also": [],
 "grid": [2112], "block": [256],
 "args": [{"f32": 33554432, "fill": "random"}, {"f32": 4096, "fill": "random"}, {"f32": 33554432}, {"int": 33554432}]}
Private table of 16 entries per lane, kept entry-major per thread: neighbouring lanes are 16 words apart.
*/
extern "C" __global__ void lut_interleaved(const float* __restrict__ x, const float* __restrict__ table,
                                           float* __restrict__ y, int n) {
  __shared__ float lut[256 * 16];
  for (int k = 0; k < 16; ++k) lut[threadIdx.x * 16 + k] = table[threadIdx.x * 16 + k];
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float v = x[i], r = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) r = fmaf(r, v, lut[threadIdx.x * 16 + k]);
    y[i] = r;
  }
}
