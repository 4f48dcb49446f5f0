/*
{"fault": "warp_stall", "severity": "severe", "also": ["cache_locality"],
 "grid": [264], "block": [128],
 "args": [{"i32": 1048576, "fill": "random", "below": 1048576}, {"i32": 33792}, {"int": 400}]}
Walks of 400 steps through a table in L2, one per warp: each step's row is what the last one read.
*/
extern "C" __global__ void markov_walk(const int* __restrict__ next, int* __restrict__ out, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = i & 31, at = i * 7;
  at = __shfl_sync(~0u, at, 0) & 1048575;
  for (int k = 0; k < steps; ++k) {
    int v = next[(at & ~31) + lane];
    at = (__shfl_sync(~0u, v, k & 31) + k) & 1048575;
  }
  out[i] = at;
}
