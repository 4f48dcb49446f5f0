/*
{"fault": "atomic_contention", "severity": "mild", "also": [],
 "grid": [65536], "block": [256],
 "args": [{"i32": 16777216, "fill": "random", "below": 256}, {"i32": 256}]}
256-bin histogram, every count an atomic in global memory.
*/
extern "C" __global__ void histogram_global(const int* __restrict__ x, int* bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&bins[x[i]], 1);
}
