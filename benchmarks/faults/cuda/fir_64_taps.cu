/*
{"fault": "shared_memory_tiling", "severity": "mild", "also": [],
 "grid": [65536], "block": [256],
 "args": [{"f32": 16777300, "fill": "random"}, {"f32": 64, "fill": "random"}, {"f32": 16777216}, {"int": 64}]}
FIR filter with 64 taps; samples and coefficients come from global memory for every product.
*/
extern "C" __global__ void fir_64_taps(const float* __restrict__ x, const float* __restrict__ w,
                                       float* __restrict__ y, int taps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < taps; ++k) sum += w[k] * x[i + k];
  y[i] = sum;
}
