/*
{"fault": "atomic_contention", "severity": "severe", "also": [],
 "grid": [16384], "block": [256],
 "args": [{"f32": 4194304, "fill": "random"}, {"f32": 1}]}
Sum of an array with one atomicAdd per element.
*/
extern "C" __global__ void sum_one_address(const float* __restrict__ x, float* total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(total, x[i]);
}
