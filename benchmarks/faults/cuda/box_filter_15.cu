/*
{"fault": "shared_memory_tiling", "severity": "severe", "also": [],
 "grid": [128, 512], "block": [32, 8],
 "args": [{"f32": 16777216, "fill": "random"}, {"f32": 16777216}, {"int": 4096}]}
15 x 15 box filter, every tap read from global memory.
*/
extern "C" __global__ void box_filter_15(const float* __restrict__ in, float* __restrict__ out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x < 7 || y < 7 || x >= n - 7 || y >= n - 7) return;
  float sum = 0.0f;
  for (int dy = -7; dy <= 7; ++dy)
    for (int dx = -7; dx <= 7; ++dx) sum += in[(y + dy) * n + x + dx];
  out[y * n + x] = sum * (1.0f / 225.0f);
}
