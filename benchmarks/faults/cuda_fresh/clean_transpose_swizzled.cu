/*
{"fault": null, "severity": "clean", "also": [],
 "grid": [256, 256], "block": [32, 8], "compulsory_bytes": 536870912,
 "args": [{"f32": 67108864, "fill": "random"}, {"f32": 67108864}, {"int": 8192}]}
Transpose through a shared tile whose columns are rotated by the row.
*/
extern "C" __global__ void clean_transpose_swizzled(const float* __restrict__ x, float* __restrict__ y, int n) {
  __shared__ float tile[32][32];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32;
  for (int k = threadIdx.y; k < 32; k += 8) tile[k][(threadIdx.x + k) & 31] = x[(long)(r + k) * n + c];
  __syncthreads();
  int c2 = blockIdx.y * 32 + threadIdx.x, r2 = blockIdx.x * 32;
  for (int k = threadIdx.y; k < 32; k += 8) y[(long)(r2 + k) * n + c2] = tile[threadIdx.x][(k + threadIdx.x) & 31];
}
