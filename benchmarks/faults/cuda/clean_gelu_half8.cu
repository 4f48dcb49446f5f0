/*
{"fault": null, "severity": "clean",
 "grid": [65536], "block": [256], "compulsory_bytes": 536870912,
 "args": [{"f16": 134217728, "fill": "random"}, {"f16": 134217728}]}
GELU (tanh form) on eight halves a thread, 128-bit accesses.
*/
#include <cuda_fp16.h>
__device__ __forceinline__ float gelu(float v) {
  float t = 0.7978846f * (v + 0.044715f * v * v * v);
  float r;
  asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(t));
  return 0.5f * v * (1.0f + r);
}
extern "C" __global__ void clean_gelu_half8(const uint4* __restrict__ x, uint4* __restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  uint4 u = x[i];
  __half2* h = reinterpret_cast<__half2*>(&u);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    float2 f = __half22float2(h[k]);
    h[k] = __floats2half2_rn(gelu(f.x), gelu(f.y));
  }
  y[i] = u;
}
