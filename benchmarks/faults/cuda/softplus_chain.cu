/*
{"fault": "special_function_bound", "severity": "mild", "also": [],
 "grid": [32768], "block": [256],
 "args": [{"f32": 8388608, "fill": "random"}, {"f32": 8388608}]}
Six layers of log(1 + exp(x)) and 1 / sqrt in one element-wise kernel.
*/
extern "C" __global__ void softplus_chain(const float* __restrict__ x, float* __restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
#pragma unroll
  for (int k = 0; k < 6; ++k) {
    v = __logf(1.0f + __expf(v));
    v = v * rsqrtf(v + 0.5f) + __frcp_rn(v + 2.0f);
  }
  y[i] = v;
}
