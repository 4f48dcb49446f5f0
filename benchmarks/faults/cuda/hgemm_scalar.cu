/*
{"fault": "tensor_core_underutilization", "severity": "severe", "also": [], "matmul": true,
 "grid": [64, 64], "block": [32, 32],
 "args": [{"f16": 4194304, "fill": "random"}, {"f16": 4194304, "fill": "random"}, {"f16": 4194304}, {"int": 2048}]}
Half-precision matrix product, tiled in shared memory, multiplied with scalar float instructions.
*/
#include <cuda_fp16.h>
extern "C" __global__ void hgemm_scalar(const __half* __restrict__ a, const __half* __restrict__ b,
                                        __half* __restrict__ c, int n) {
  __shared__ float as[32][33], bs[32][33];
  int tx = threadIdx.x, ty = threadIdx.y, col = blockIdx.x * 32 + tx, row = blockIdx.y * 32 + ty;
  float sum = 0.0f;
  for (int k = 0; k < n; k += 32) {
    as[ty][tx] = __half2float(a[row * n + k + tx]);
    bs[ty][tx] = __half2float(b[(k + ty) * n + col]);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 32; ++i) sum += as[ty][i] * bs[i][tx];
    __syncthreads();
  }
  c[row * n + col] = __float2half(sum);
}
