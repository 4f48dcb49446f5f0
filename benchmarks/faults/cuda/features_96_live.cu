/*
{"fault": "high_register_usage", "severity": "mild", "also": ["occupancy_limiter"],
 "grid": [1056], "block": [128],
 "args": [{"f32": 67108864, "fill": "random"}, {"f32": 135168}, {"int": 256}]}
96 running features a thread, one dependent load per step.
*/
extern "C" __global__ void features_96_live(const float* __restrict__ x, float* __restrict__ out, int steps) {
  int id = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  float f[96];
#pragma unroll
  for (int c = 0; c < 96; ++c) f[c] = 0.0f;
  unsigned at = id;
#pragma unroll 1
  for (int k = 0; k < steps; ++k) {
    float v = x[at & 67108863u];
    at += n + (v > 2.0f);
#pragma unroll
    for (int c = 0; c < 96; ++c) f[c] = fmaf(v, 0.02f * c, f[c]);
  }
  float total = 0.0f;
#pragma unroll
  for (int c = 0; c < 96; ++c) total += f[c] * f[c];
  out[id] = total;
}
