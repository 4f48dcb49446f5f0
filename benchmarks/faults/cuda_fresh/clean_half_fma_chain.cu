/*
{"fault": null, "severity": "clean", "also": [],
 "grid": [2112], "block": [256],
 "args": [{"f32": 540672, "fill": "random"}, {"f32": 540672}, {"int": 3000}]}
Sixteen independent single-precision chains in registers.
*/
extern "C" __global__ void clean_half_fma_chain(const float* __restrict__ x, float* __restrict__ y, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i], a[16];
#pragma unroll
  for (int k = 0; k < 16; ++k) a[k] = v + k;
#pragma unroll 4
  for (int s = 0; s < steps; ++s) {
#pragma unroll
    for (int k = 0; k < 16; ++k) a[k] = fmaf(a[k], 0.9999f, 0.5f);
  }
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < 16; ++k) sum += a[k];
  y[i] = sum;
}
