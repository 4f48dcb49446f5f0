/*
{"fault": null, "severity": "clean", "also": [],
 "grid": [16384], "block": [256], "compulsory_bytes": 536936448,
 "args": [{"f32": 134217728, "fill": "random"}, {"f32": 16384}, {"int": 8192}]}
Row maxima: vector loads, warp shuffles, one barrier.
*/
extern "C" __global__ void clean_max_per_row(const float4* __restrict__ x, float* __restrict__ y, int n) {
  __shared__ float part[8];
  const float4* row = x + (long)blockIdx.x * (n / 4);
  float4 v[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) v[k] = row[threadIdx.x + 256 * k];
  float m = -3e38f;
#pragma unroll
  for (int k = 0; k < 8; ++k) m = fmaxf(m, fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)));
  for (int d = 16; d; d >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = m;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 8; ++w) m = fmaxf(m, part[w]);
    y[blockIdx.x] = m;
  }
}
