/*
{"fault": "launch_configuration", "severity": "mild", "also": [],
 "grid": [140], "block": [1024], "shared": 131072,
 "args": [{"f32": 143360, "fill": "random"}, {"f32": 143360}, {"int": 20000}]}
140 equal blocks of one per SM: eight of them run a second wave alone.
*/
extern "C" __global__ void tail_140_blocks(const float* __restrict__ x, float* __restrict__ y, int steps) {
  extern __shared__ float scratch[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  scratch[threadIdx.x] = x[i];
  float a = x[i], b = a + 1.0f, c = a + 2.0f, d = a + 3.0f;
  for (int k = 0; k < steps; ++k) {
    a = fmaf(a, 0.999f, 0.1f);
    b = fmaf(b, 0.998f, 0.2f);
    c = fmaf(c, 0.997f, 0.3f);
    d = fmaf(d, 0.996f, 0.4f);
  }
  y[i] = a + b + c + d + scratch[threadIdx.x];
}
