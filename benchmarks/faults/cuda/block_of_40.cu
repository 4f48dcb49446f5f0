/*
{"fault": "launch_configuration", "severity": "mild", "also": ["warp_divergence"],
 "grid": [26400], "block": [40],
 "args": [{"f32": 1056000, "fill": "random"}, {"f32": 1056000}, {"int": 4000}]}
One block per row of 40 columns: the second warp of every block has 8 threads.
*/
extern "C" __global__ void block_of_40(const float* __restrict__ x, float* __restrict__ y, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = x[i], b = a + 0.5f;
  for (int k = 0; k < steps; ++k) {
    a = fmaf(a, 0.999f, 0.1f);
    b = fmaf(b, 0.998f, 0.2f);
  }
  y[i] = a + b;
}
