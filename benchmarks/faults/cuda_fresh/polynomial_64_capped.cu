/*
{"fault": "register_spill", "severity": "severe", "also": [],
 "flags": ["-maxrregcount=40"],
 "grid": [1056], "block": [256],
 "args": [{"f32": 270336, "fill": "random"}, {"f32": 270336}, {"int": 300}]}
Sixty-four coefficients updated in turn by every thread, compiled with at most 40 registers.
*/
extern "C" __global__ void polynomial_64_capped(const float* __restrict__ x, float* __restrict__ y, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i], c[64];
#pragma unroll
  for (int k = 0; k < 64; ++k) c[k] = v * k;
#pragma unroll 1
  for (int s = 0; s < steps; ++s) {
#pragma unroll
    for (int k = 0; k < 64; ++k) c[k] = fmaf(c[(k + 17) & 63], 0.999f, c[k] * 0.5f);
  }
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < 64; ++k) sum += c[k];
  y[i] = sum;
}
