/*
{"fault": "high_register_usage", "severity": "severe", "also": ["occupancy_limiter"],
 "grid": [1024], "block": [128],
 "args": [{"f32": 33554432, "fill": "random"}, {"f32": 1024, "fill": "random"}, {"f32": 18874368}, {"int": 256}]}
144 outputs of a layer kept by each thread while it streams its column of inputs.
*/
extern "C" __global__ void row_mlp_144(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, int length) {
  long id = (long)blockIdx.x * blockDim.x + threadIdx.x, n = (long)gridDim.x * blockDim.x;
  float acc[144];
#pragma unroll
  for (int c = 0; c < 144; ++c) acc[c] = 0.0f;
#pragma unroll 1
  for (int k = 0; k < length; ++k) {
    float v = x[k * n + id] * w[k];
#pragma unroll
    for (int c = 0; c < 144; ++c) acc[c] = fmaf(v, 0.5f + 0.001f * c, acc[c]);
  }
#pragma unroll
  for (int c = 0; c < 144; ++c) y[c * n + id] = acc[c];
}
