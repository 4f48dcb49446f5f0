/*
{"fault": "uncoalesced_access", "severity": "severe", "also": ["memory_coalescing"],
 "grid": [1024], "block": [256],
 "args": [{"f32": 33554432, "fill": "random"}, {"f32": 33554432}, {"int": 262144}]}
Rotary embedding of heads of 128, one head per thread: neighbouring threads are 512 bytes apart.
*/
extern "C" __global__ void rotary_row_per_thread(const float* __restrict__ x, float* __restrict__ y, int heads) {
  int h = blockIdx.x * blockDim.x + threadIdx.x;
  if (h >= heads) return;
  const float* in = x + (long)h * 128;
  float* out = y + (long)h * 128;
  for (int d = 0; d < 64; ++d) {
    float c = 1.0f - 0.001f * d, s = 0.002f * d, a = in[d], b = in[d + 64];
    out[d] = a * c - b * s;
    out[d + 64] = a * s + b * c;
  }
}
