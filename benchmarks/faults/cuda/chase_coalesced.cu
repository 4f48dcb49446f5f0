/*
{"fault": "warp_stall", "severity": "severe", "also": [],
 "grid": [1056], "block": [256],
 "args": [{"i32": 134217728, "fill": "index"}, {"i32": 270336}, {"int": 200}]}
Every step's address comes from the value loaded in the step before, neighbouring lanes side by side.
*/
extern "C" __global__ void chase_coalesced(const int* __restrict__ next, int* __restrict__ out, int hops) {
  int id = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  int at = id;
#pragma unroll 1
  for (int k = 0; k < hops; ++k) at = (next[at] + n) & 134217727;
  out[id] = at;
}
