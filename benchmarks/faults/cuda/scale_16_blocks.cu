/*
{"fault": "launch_configuration", "severity": "severe", "also": ["occupancy_limiter"],
 "grid": [16], "block": [256],
 "args": [{"f32": 67108864, "fill": "random"}, {"f32": 67108864}, {"int": 67108864}]}
Grid-stride loop launched with 16 blocks.
*/
extern "C" __global__ void scale_16_blocks(const float* __restrict__ x, float* __restrict__ y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2.0f * x[i] + 1.0f;
}
