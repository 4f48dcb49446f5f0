/*
{"fault": "register_spill", "severity": "mild", "also": ["high_register_usage"],
 "grid": [2112], "block": [256],
 "args": [{"f32": 12976128, "fill": "random"}, {"f32": 12976128}, {"int": 40}, {"float": 0.001}]}
Runge-Kutta for 24 coupled unknowns a thread; launch bounds for 6 blocks an SM leave 40 registers.
*/
__device__ __forceinline__ void slope(const float* y, float* d) {
#pragma unroll
  for (int i = 0; i < 24; ++i) d[i] = y[(i + 1) % 24] * (y[(i + 2) % 24] - y[(i + 23) % 24]) - y[i] + 8.0f;
}
extern "C" __global__ void __launch_bounds__(256, 6) rk4_bounded(const float* __restrict__ in, float* __restrict__ out,
                                                                 int steps, float h) {
  long id = (long)blockIdx.x * blockDim.x + threadIdx.x, n = (long)gridDim.x * blockDim.x;
  float y[24], k[24], s[24], t[24];
#pragma unroll
  for (int i = 0; i < 24; ++i) y[i] = in[i * n + id];
  for (int step = 0; step < steps; ++step) {
    slope(y, k);
#pragma unroll
    for (int i = 0; i < 24; ++i) { s[i] = k[i]; t[i] = y[i] + 0.5f * h * k[i]; }
    slope(t, k);
#pragma unroll
    for (int i = 0; i < 24; ++i) { s[i] += 2.0f * k[i]; t[i] = y[i] + 0.5f * h * k[i]; }
    slope(t, k);
#pragma unroll
    for (int i = 0; i < 24; ++i) { s[i] += 2.0f * k[i]; t[i] = y[i] + h * k[i]; }
    slope(t, k);
#pragma unroll
    for (int i = 0; i < 24; ++i) y[i] += h / 6.0f * (s[i] + k[i]);
  }
#pragma unroll
  for (int i = 0; i < 24; ++i) out[i * n + id] = y[i];
}
