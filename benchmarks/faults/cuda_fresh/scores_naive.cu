/*
{"fault": "shared_memory_tiling", "severity": "severe", "also": ["tensor_core_underutilization"], "matmul": true,
 "grid": [128, 256], "block": [16, 8],
 "args": [{"f32": 262144, "fill": "random"}, {"f32": 262144, "fill": "random"}, {"f32": 4194304}, {"int": 2048}]}
Attention scores of one head: every thread multiplies a query with a key of 128, all from global memory.
*/
extern "C" __global__ void scores_naive(const float* __restrict__ q, const float* __restrict__ k, float* __restrict__ s, int n) {
  int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
  float sum = 0.0f;
  for (int d = 0; d < 128; ++d) sum = fmaf(q[i * 128 + d], k[d * n + j], sum);
  s[(long)i * n + j] = sum * 0.088388f;
}
