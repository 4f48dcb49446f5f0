/*
{"fault": "vectorization", "severity": "severe", "also": ["uncoalesced_access"],
 "grid": [131072], "block": [256],
 "args": [{"u8": 100663296, "fill": "random"}, {"u8": 33554432}, {"int": 33554432}]}
Luma of an interleaved RGB image: three byte loads and a byte store per pixel.
*/
extern "C" __global__ void luma_from_rgb_bytes(const unsigned char* __restrict__ rgb, unsigned char* __restrict__ y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (77 * rgb[3 * i] + 150 * rgb[3 * i + 1] + 29 * rgb[3 * i + 2]) >> 8;
}
