/*
{"fault": "shared_memory_tiling", "severity": "severe", "also": ["tensor_core_underutilization"],
 "grid": [64, 64], "block": [32, 32], "compulsory_bytes": 50331648, "matmul": true,
 "args": [{"f32": 4194304, "fill": "random"}, {"f32": 4194304, "fill": "random"}, {"f32": 4194304}, {"int": 2048}]}
Matrix product, one output per thread, operands straight from global memory.
*/
extern "C" __global__ void matmul_naive(const float* __restrict__ a, const float* __restrict__ b,
                                        float* __restrict__ c, int n) {
  int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  float sum = 0.0f;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
  c[row * n + col] = sum;
}
