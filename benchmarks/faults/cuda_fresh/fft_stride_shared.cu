/*
{"fault": "shared_bank_conflicts", "severity": "severe", "also": [],
 "grid": [8192], "block": [256],
 "args": [{"f32": 8388608, "fill": "random"}, {"f32": 8388608}]}
Butterflies on 1024 values a block, each thread owning four neighbours: strides of four words.
*/
extern "C" __global__ void fft_stride_shared(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float v[1024];
  int t = threadIdx.x;
  long base = (long)blockIdx.x * 1024;
  for (int k = 0; k < 4; ++k) v[t + 256 * k] = x[base + t + 256 * k];
  __syncthreads();
  for (int round = 0; round < 24; ++round) {
    int s = (t * 32 + t / 32) & 1023;
    float a = v[s], b = v[s ^ 512];
    __syncthreads();
    v[s] = 0.5f * (a + b) + 0.001f;
    __syncthreads();
  }
  for (int k = 0; k < 4; ++k) y[base + t + 256 * k] = v[t + 256 * k];
}
