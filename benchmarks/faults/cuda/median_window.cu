/*
{"fault": "local_memory_indexing", "severity": "mild", "also": [],
 "grid": [65536], "block": [256],
 "args": [{"f32": 16777300, "fill": "random"}, {"f32": 16777216}, {"int": 9}]}
Running median of a window whose length is a run-time value: insertion sort in a local array.
*/
extern "C" __global__ void median_window(const float* __restrict__ x, float* __restrict__ y, int window) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v[15];
  for (int k = 0; k < window; ++k) {
    float value = x[i + k];
    int j = k;
    while (j > 0 && v[j - 1] > value) { v[j] = v[j - 1]; --j; }
    v[j] = value;
  }
  y[i] = v[window / 2];
}
