/*
{"fault": "fp64_usage", "severity": "severe", "also": [],
 "grid": [65536], "block": [256],
 "args": [{"f32": 16777216, "fill": "random"}, {"f32": 16777216}]}
GELU on floats with double literals: the whole expression is evaluated in double precision.
*/
extern "C" __global__ void gelu_double_literals(const float* __restrict__ x, float* __restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  y[i] = 0.5 * v * (1.0 + tanh(0.7978845608 * (v + 0.044715 * v * v * v)));
}
