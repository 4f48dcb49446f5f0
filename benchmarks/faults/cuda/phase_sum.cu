/*
{"fault": "special_function_bound", "severity": "severe", "also": [],
 "grid": [16384], "block": [256],
 "args": [{"f32": 4194304, "fill": "random"}, {"f32": 4194304}]}
Sum of 32 phases with the fast sine and cosine of the special-function unit.
*/
extern "C" __global__ void phase_sum(const float* __restrict__ x, float* __restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i], s = 0.0f;
#pragma unroll
  for (int k = 1; k <= 32; ++k) s += __sinf(v * k) * __cosf(v + k);
  y[i] = s;
}
