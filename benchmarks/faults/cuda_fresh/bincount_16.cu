/*
{"fault": "atomic_contention", "severity": "severe", "also": [],
 "grid": [8192], "block": [256],
 "args": [{"i32": 8388608, "fill": "random", "below": 16}, {"i32": 16}, {"int": 8388608}]}
Counts of 16 classes, one global atomic per element.
*/
extern "C" __global__ void bincount_16(const int* __restrict__ x, int* __restrict__ bins, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(bins + (x[i] & 15), 1);
}
