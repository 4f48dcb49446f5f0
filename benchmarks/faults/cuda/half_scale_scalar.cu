/*
{"fault": "vectorization", "severity": "mild", "also": [],
 "grid": [262144], "block": [256],
 "args": [{"f16": 67108864, "fill": "random"}, {"f16": 67108864, "fill": "random"}, {"f16": 67108864}, {"int": 67108864}]}
Half-precision a * x + y, one 16-bit element per thread.
*/
#include <cuda_fp16.h>
extern "C" __global__ void half_scale_scalar(const __half* __restrict__ x, const __half* __restrict__ y,
                                             __half* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __float2half(1.5f * __half2float(x[i]) + __half2float(y[i]));
}
