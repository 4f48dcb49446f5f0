/*
{"fault": "warp_divergence", "severity": "severe", "also": [],
 "grid": [16384], "block": [256],
 "args": [{"f32": 8388608, "fill": "random"}, {"i32": 4194304}, {"int": 500}]}
Escape-time iteration for random points: lanes of a warp stop after very different numbers of steps.
*/
extern "C" __global__ void escape_time(const float* __restrict__ points, int* __restrict__ steps, int limit) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float cx = 4.0f * points[i] - 2.5f, cy = 3.0f * points[4194304 + i] - 1.5f, x = 0.0f, y = 0.0f;
  int k = 0;
  while (k < limit && x * x + y * y < 4.0f) {
    float t = x * x - y * y + cx;
    y = 2.0f * x * y + cy;
    x = t;
    ++k;
  }
  steps[i] = k;
}
