/*
{"fault": null, "severity": "clean",
 "grid": [1056], "block": [512], "compulsory_bytes": 536870912,
 "args": [{"f32": 134217728, "fill": "random"}, {"f32": 1056}, {"int": 33554432}]}
Sum with 128-bit loads, warp shuffles and one partial sum a block.
*/
extern "C" __global__ void clean_sum_shuffle(const float4* __restrict__ x, float* __restrict__ partial, int n) {
  __shared__ float part[16];
  float s0 = 0.0f, s1 = 0.0f;
  int step = gridDim.x * blockDim.x;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (; i + step < n; i += 2 * step) {
    float4 u = x[i], v = x[i + step];
    s0 += u.x + u.y + u.z + u.w;
    s1 += v.x + v.y + v.z + v.w;
  }
  if (i < n) {
    float4 u = x[i];
    s0 += u.x + u.y + u.z + u.w;
  }
  float s = s0 + s1;
  for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = s;
  __syncthreads();
  if (threadIdx.x < 16) {
    s = part[threadIdx.x];
    for (int d = 8; d; d >>= 1) s += __shfl_xor_sync(0xffffu, s, d);
    if (threadIdx.x == 0) partial[blockIdx.x] = s;
  }
}
