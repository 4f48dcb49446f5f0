/*
{"fault": "vectorization", "severity": "severe", "also": [],
 "grid": [524288], "block": [256],
 "args": [{"u8": 134217728, "fill": "random"}, {"u8": 134217728}, {"int": 134217728}]}
Inverts an 8-bit image, one byte per thread.
*/
extern "C" __global__ void invert_bytes(const unsigned char* __restrict__ in, unsigned char* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 255 - in[i];
}
