/*
{"fault": "memory_coalescing", "severity": "severe", "also": ["uncoalesced_access", "cache_locality"],
 "grid": [65536], "block": [256],
 "args": [{"f32": 134217728, "fill": "random"}, {"i32": 16777216, "fill": "random", "below": 134217728},
          {"f32": 16777216}, {"int": 16777216}]}
Gather of single floats by unsorted indices.
*/
extern "C" __global__ void gather_random(const float* __restrict__ table, const int* __restrict__ index,
                                         float* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = table[index[i]];
}
