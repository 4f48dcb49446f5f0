/*
{"fault": "fp64_usage", "severity": "mild", "also": [],
 "grid": [4096], "block": [256],
 "args": [{"f32": 33554432, "fill": "random"}, {"f32": 4096}, {"int": 8192}]}
Row moments with double accumulators: four double operations for every float read.
*/
extern "C" __global__ void variance_double_accumulator(const float4* __restrict__ x, float* __restrict__ out, int n) {
  __shared__ double part[2][8];
  const float4* row = x + (long)blockIdx.x * (n / 4);
  double s = 0.0, q = 0.0, c = 0.0, f = 0.0;
  for (int j = threadIdx.x; j < n / 4; j += blockDim.x) {
    float4 v = row[j];
    float e[4] = {v.x, v.y, v.z, v.w};
    for (int k = 0; k < 4; ++k) {
      double d = e[k];
      s += d;
      q += d * d;
      c += d * d * d;
      f += (d * d) * (d * d);
    }
  }
  s += c * 1e-3;
  q += f * 1e-3;
  for (int d = 16; d; d >>= 1) {
    s += __shfl_xor_sync(~0u, s, d);
    q += __shfl_xor_sync(~0u, q, d);
  }
  if ((threadIdx.x & 31) == 0) {
    part[0][threadIdx.x >> 5] = s;
    part[1][threadIdx.x >> 5] = q;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 8; ++w) { s += part[0][w]; q += part[1][w]; }
    out[blockIdx.x] = (float)(q / n - s / n * (s / n));
  }
}
