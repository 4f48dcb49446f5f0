/*
{"fault": "register_spill", "severity": "severe", "also": [], "flags": ["-maxrregcount=32"],
 "grid": [4096], "block": [128],
 "args": [{"f32": 33554432, "fill": "random"}, {"f32": 33554432}]}
8 x 8 DCT with the whole block in a thread's registers, compiled with at most 32 of them.
*/
extern "C" __global__ void dct_8x8_capped(const float* __restrict__ in, float* __restrict__ out) {
  long base = ((long)blockIdx.x * blockDim.x + threadIdx.x);
  long stride = (long)gridDim.x * blockDim.x;
  float v[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) v[i] = in[base + i * stride];
#pragma unroll
  for (int pass = 0; pass < 2; ++pass)
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      float t[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        t[k] = 0.0f;
#pragma unroll
        for (int j = 0; j < 8; ++j)
          t[k] += v[pass ? j * 8 + r : r * 8 + j] * (0.35f + 0.1f * ((k * (2 * j + 1)) % 16 - 8));
      }
#pragma unroll
      for (int k = 0; k < 8; ++k) v[pass ? k * 8 + r : r * 8 + k] = t[k];
    }
#pragma unroll
  for (int i = 0; i < 64; ++i) out[base + i * stride] = v[i];
}
