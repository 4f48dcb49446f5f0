/*
{"fault": "high_register_usage", "severity": "severe", "also": ["occupancy_limiter"],
 "grid": [528], "block": [128],
 "args": [{"f32": 33554432, "fill": "random"}, {"i32": 67108864, "fill": "random", "below": 33554432},
          {"f32": 8650752}, {"int": 128}]}
160 running sums a thread over samples found through an index: registers leave few warps to hide the loads.
*/
extern "C" __global__ void rbf_128_accumulators(const float* __restrict__ x, const int* __restrict__ index,
                                                float* __restrict__ out, int samples) {
  long id = (long)blockIdx.x * blockDim.x + threadIdx.x, n = (long)gridDim.x * blockDim.x;
  float acc[160];
#pragma unroll
  for (int c = 0; c < 160; ++c) acc[c] = 0.0f;
#pragma unroll 1
  for (int k = 0; k < samples; ++k) {
    float v = x[(index[k * n + id] & ~31) + (threadIdx.x & 31)];
#pragma unroll
    for (int c = 0; c < 160; ++c) acc[c] = fmaf(v, 0.01f * c, acc[c]);
  }
  float total = 0.0f;
#pragma unroll
  for (int c = 0; c < 160; ++c) total += acc[c] * acc[c];
  out[id] = total;
}
