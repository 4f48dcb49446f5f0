/*
{"fault": "dram_bandwidth", "severity": "severe", "also": ["cache_locality"],
 "grid": [1056], "block": [512], "compulsory_bytes": 2147483648,
 "args": [{"f32": 268435456, "fill": "random"}, {"f32": 268435456}, {"int": 254200}]}
Normalisation of very long rows: statistics in one pass, the result in another.
*/
extern "C" __global__ void batch_norm_two_pass(const float4* __restrict__ x, float4* __restrict__ y, int n) {
  __shared__ float part[2][16];
  const float4* row = x + (long)blockIdx.x * (n / 4);
  float4* out = y + (long)blockIdx.x * (n / 4);
  float s = 0.0f, q = 0.0f;
  for (int j = threadIdx.x; j < n / 4; j += blockDim.x) {
    float4 v = row[j];
    s += v.x + v.y + v.z + v.w;
    q += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  for (int d = 16; d; d >>= 1) {
    s += __shfl_xor_sync(~0u, s, d);
    q += __shfl_xor_sync(~0u, q, d);
  }
  if ((threadIdx.x & 31) == 0) { part[0][threadIdx.x >> 5] = s; part[1][threadIdx.x >> 5] = q; }
  __syncthreads();
  s = q = 0.0f;
  for (int w = 0; w < 16; ++w) { s += part[0][w]; q += part[1][w]; }
  float mean = s / n, scale = rsqrtf(q / n - mean * mean + 1e-5f);
  for (int j = threadIdx.x; j < n / 4; j += blockDim.x) {
    float4 v = row[j];
    out[j] = make_float4((v.x - mean) * scale, (v.y - mean) * scale, (v.z - mean) * scale, (v.w - mean) * scale);
  }
}
