/*
{"fault": "launch_configuration", "severity": "severe", "also": [],
 "grid": [40], "block": [512],
 "args": [{"f32": 20971520, "fill": "random"}, {"f32": 20971520}, {"int": 524288}]}
One block per channel for 40 channels, each with half a million values.
*/
extern "C" __global__ void scan_by_40_blocks(const float* __restrict__ x, float* __restrict__ y, int length) {
  const float* in = x + (long)blockIdx.x * length;
  float* out = y + (long)blockIdx.x * length;
  for (int i = threadIdx.x; i < length; i += blockDim.x) out[i] = fmaxf(in[i], 0.0f) * 1.5f;
}
