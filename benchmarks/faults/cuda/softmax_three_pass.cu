/*
{"fault": "dram_bandwidth", "severity": "severe", "also": ["cache_locality"],
 "grid": [1056], "block": [512], "compulsory_bytes": 2214592512,
 "args": [{"f32": 276824064, "fill": "random"}, {"f32": 276824064}, {"int": 262144}]}
Softmax over very long rows: maximum, sum and result in a pass of their own.
*/
__device__ float block_reduce(float v, bool maximum) {
  __shared__ float part[16];
  for (int d = 16; d; d >>= 1) {
    float o = __shfl_xor_sync(~0u, v, d);
    v = maximum ? fmaxf(v, o) : v + o;
  }
  __syncthreads();
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
  __syncthreads();
  v = part[0];
  for (int w = 1; w < 16; ++w) v = maximum ? fmaxf(v, part[w]) : v + part[w];
  return v;
}
extern "C" __global__ void softmax_three_pass(const float4* __restrict__ x, float4* __restrict__ y, int n) {
  const float4* row = x + (long)blockIdx.x * (n / 4);
  float4* out = y + (long)blockIdx.x * (n / 4);
  float m = -3e38f;
  for (int j = threadIdx.x; j < n / 4; j += blockDim.x) {
    float4 v = row[j];
    m = fmaxf(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)), m);
  }
  m = block_reduce(m, true);
  float s = 0.0f;
  for (int j = threadIdx.x; j < n / 4; j += blockDim.x) {
    float4 v = row[j];
    s += __expf(v.x - m) + __expf(v.y - m) + __expf(v.z - m) + __expf(v.w - m);
  }
  s = 1.0f / block_reduce(s, false);
  for (int j = threadIdx.x; j < n / 4; j += blockDim.x) {
    float4 v = row[j];
    out[j] = make_float4(__expf(v.x - m) * s, __expf(v.y - m) * s, __expf(v.z - m) * s, __expf(v.w - m) * s);
  }
}
