/*
{"fault": null, "severity": "clean",
 "grid": [2112], "block": [256],
 "args": [{"f32": 540672, "fill": "random"}, {"f32": 540672}, {"int": 4000}]}
Eight independent multiply-add chains in registers.
*/
extern "C" __global__ void clean_fma_registers(const float* __restrict__ x, float* __restrict__ y, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) a[k] = x[i] + k;
  for (int s = 0; s < steps; ++s)
#pragma unroll
    for (int k = 0; k < 8; ++k) a[k] = fmaf(a[k], 0.999f, 0.001f);
  float t = 0.0f;
#pragma unroll
  for (int k = 0; k < 8; ++k) t += a[k];
  y[i] = t;
}
