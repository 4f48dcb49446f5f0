/*
{"fault": "uncoalesced_access", "severity": "severe", "also": ["memory_coalescing"],
 "grid": [256, 1024], "block": [32, 8],
 "args": [{"f32": 67108864, "fill": "random"}, {"f32": 67108864}, {"int": 8192}]}
Transpose that reads rows and writes columns.
*/
extern "C" __global__ void transpose_naive(const float* __restrict__ in, float* __restrict__ out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 8 + threadIdx.y;
  out[(long)x * n + y] = in[(long)y * n + x];
}
