/*
{"fault": "fp64_usage", "severity": "severe", "also": [],
 "grid": [32768], "block": [256],
 "args": [{"f32": 8388608, "fill": "random"}, {"f32": 8388608}]}
Normal distribution function of floats by the double-precision erfc.
*/
extern "C" __global__ void normal_cdf_double(const float* __restrict__ x, float* __restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = 0.5 * erfc(-x[i] * 0.70710678118654752);
}
