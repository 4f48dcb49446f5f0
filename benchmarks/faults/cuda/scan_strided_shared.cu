/*
{"fault": "shared_bank_conflicts", "severity": "mild", "also": ["barrier_stall"],
 "grid": [32768], "block": [256],
 "args": [{"f32": 16777216, "fill": "random"}, {"f32": 16777216}]}
Work-efficient scan of 512 elements a block with the textbook index arithmetic and no padding.
*/
extern "C" __global__ void scan_strided_shared(const float* __restrict__ in, float* __restrict__ out) {
  __shared__ float s[512];
  int t = threadIdx.x;
  long base = (long)blockIdx.x * 512;
  s[2 * t] = in[base + 2 * t];
  s[2 * t + 1] = in[base + 2 * t + 1];
  int offset = 1;
  for (int d = 256; d > 0; d >>= 1) {
    __syncthreads();
    if (t < d) s[offset * (2 * t + 2) - 1] += s[offset * (2 * t + 1) - 1];
    offset *= 2;
  }
  if (t == 0) s[511] = 0.0f;
  for (int d = 1; d < 512; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (t < d) {
      float v = s[offset * (2 * t + 1) - 1];
      s[offset * (2 * t + 1) - 1] = s[offset * (2 * t + 2) - 1];
      s[offset * (2 * t + 2) - 1] += v;
    }
  }
  __syncthreads();
  out[base + 2 * t] = s[2 * t];
  out[base + 2 * t + 1] = s[2 * t + 1];
}
