/*
{"fault": "occupancy_limiter", "severity": "severe", "also": [],
 "grid": [264], "block": [96], "shared": 114688,
 "args": [{"f32": 28672, "fill": "random"}, {"i32": 33554432, "fill": "random", "below": 28672}, {"f32": 33554432}, {"int": 33554432}]}
Dequantises indices with a codebook of 112 KiB in shared memory: two blocks of three warps an SM.
*/
extern "C" __global__ void codebook_112k(const float* __restrict__ book, const int* __restrict__ code, float* __restrict__ y, int n) {
  extern __shared__ float table[];
  for (int i = threadIdx.x; i < 28672; i += blockDim.x) table[i] = book[i];
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = table[code[i]];
}
