/*
{"fault": "special_function_bound", "severity": "severe", "also": [],
 "grid": [16384], "block": [256],
 "args": [{"f32": 4194304, "fill": "random"}, {"f32": 4194304}, {"int": 24}]}
Weighted means in the log domain: a logarithm and an exponential per term, from the fast unit.
*/
extern "C" __global__ void geometric_mean_logs(const float* __restrict__ x, float* __restrict__ y, int terms) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i] + 0.5f, s = 0.0f;
  for (int k = 1; k <= terms; ++k) s += exp2f(__log2f(v + k) * 0.25f) + rsqrtf(v * k + 1.0f);
  y[i] = s;
}
