/*
{"fault": "warp_divergence", "severity": "mild", "also": ["special_function_bound"],
 "grid": [32768], "block": [256],
 "args": [{"f32": 8388608, "fill": "random"}, {"i32": 8388608, "fill": "random", "below": 4}, {"f32": 8388608}]}
Four material laws chosen per element: every warp runs all four.
*/
extern "C" __global__ void material_switch(const float* __restrict__ x, const int* __restrict__ kind,
                                           float* __restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  switch (kind[i]) {
    case 0:
      for (int k = 0; k < 24; ++k) v = fmaf(v, 0.99f, 0.3f) - v * v * 0.01f;
      break;
    case 1:
      for (int k = 0; k < 24; ++k) v = fmaf(v, 1.01f, -0.2f) + v * v * 0.02f;
      break;
    case 2:
      for (int k = 0; k < 24; ++k) v = fabsf(v - 0.5f) * 1.5f + fmaf(v, v, 0.1f) * 0.1f;
      break;
    default:
      for (int k = 0; k < 24; ++k) v = fminf(v * 1.1f, 3.0f) + fmaf(v, -0.3f, 0.4f);
  }
  y[i] = v;
}
