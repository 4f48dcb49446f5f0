/*
{"fault": "cache_locality", "severity": "mild", "also": ["dram_bandwidth", "memory_coalescing"],
 "grid": [262144], "block": [256],
 "args": [{"f32": 33554432, "fill": "random"}, {"i32": 2097152, "fill": "random", "below": 1048576},
          {"f32": 67108864}, {"int": 2097152}]}
Embedding rows of 32 floats fetched in arrival order although every row is wanted twice.
*/
extern "C" __global__ void embedding_unsorted(const float* __restrict__ table, const int* __restrict__ token,
                                              float* __restrict__ out, int tokens) {
  int t = blockIdx.x * 8 + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  if (t < tokens) out[(long)t * 32 + lane] = table[(long)token[t] * 32 + lane];
}
