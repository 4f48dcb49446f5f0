/*
{"fault": "barrier_stall", "severity": "severe", "also": [],
 "grid": [16384], "block": [1024],
 "args": [{"f32": 16777216, "fill": "random"}, {"f32": 16777216}]}
Prefix sums of 1024 values with two barriers in each of ten steps.
*/
extern "C" __global__ void __launch_bounds__(1024) hillis_steele_1024(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float v[1024];
  int t = threadIdx.x;
  long i = (long)blockIdx.x * 1024 + t;
  v[t] = x[i];
  __syncthreads();
  for (int d = 1; d < 1024; d *= 2) {
    float other = t >= d ? v[t - d] : 0.0f;
    __syncthreads();
    v[t] += other;
    __syncthreads();
  }
  y[i] = v[t];
}
