/*
{"fault": "dram_bandwidth", "severity": "mild", "also": ["cache_locality"],
 "grid": [1056], "block": [512], "compulsory_bytes": 2214592512,
 "args": [{"f32": 276824064, "fill": "random"}, {"f32": 276824064}, {"int": 262144}]}
Subtracts the mean of very long rows: the row is read from memory twice.
*/
extern "C" __global__ void center_two_pass(const float4* __restrict__ x, float4* __restrict__ y, int n) {
  __shared__ float part[16];
  const float4* row = x + (long)blockIdx.x * (n / 4);
  float4* out = y + (long)blockIdx.x * (n / 4);
  float s = 0.0f;
  for (int j = threadIdx.x; j < n / 4; j += blockDim.x) {
    float4 v = row[j];
    s += v.x + v.y + v.z + v.w;
  }
  for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = s;
  __syncthreads();
  s = 0.0f;
  for (int w = 0; w < 16; ++w) s += part[w];
  s /= n;
  for (int j = threadIdx.x; j < n / 4; j += blockDim.x) {
    float4 v = row[j];
    out[j] = make_float4(v.x - s, v.y - s, v.z - s, v.w - s);
  }
}
