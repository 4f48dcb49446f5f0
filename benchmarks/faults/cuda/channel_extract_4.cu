/*
{"fault": "memory_coalescing", "severity": "mild", "also": ["uncoalesced_access"],
 "grid": [131072], "block": [256],
 "args": [{"f32": 134217728, "fill": "random"}, {"f32": 33554432}, {"int": 33554432}]}
Alpha channel of an RGBA image: a quarter of every fetched sector is used.
*/
extern "C" __global__ void channel_extract_4(const float* __restrict__ rgba, float* __restrict__ alpha,
                                             int pixels) {
  int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel < pixels) alpha[pixel] = fminf(rgba[4l * pixel + 3], 1.0f);
}
