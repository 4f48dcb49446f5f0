/*
{"fault": "warp_stall", "severity": "mild", "also": [],
 "grid": [528], "block": [256],
 "args": [{"f32": 135168, "fill": "random"}, {"f32": 135168}, {"int": 20000}]}
Newton iteration whose every operation waits for the one before.
*/
extern "C" __global__ void recurrence_dependent(const float* __restrict__ x, float* __restrict__ y, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i] + 1.0f, r = 0.5f;
#pragma unroll 1
  for (int k = 0; k < steps; ++k) {
    r = fmaf(fmaf(-v, r, 1.0f), r, r);
    v = fmaf(r, 1e-6f, v);
  }
  y[i] = r;
}
