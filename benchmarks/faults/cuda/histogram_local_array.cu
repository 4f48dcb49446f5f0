/*
{"fault": "local_memory_indexing", "severity": "severe", "also": [],
 "grid": [1056], "block": [256],
 "args": [{"i32": 69206016, "fill": "random", "below": 1000000}, {"i32": 8650752}, {"int": 256}]}
Per-thread histogram of 32 bins in a local array that is indexed by the data.
*/
extern "C" __global__ void histogram_local_array(const int* __restrict__ x, int* __restrict__ out, int each) {
  long id = (long)blockIdx.x * blockDim.x + threadIdx.x, n = (long)gridDim.x * blockDim.x;
  int bins[32];
  for (int b = 0; b < 32; ++b) bins[b] = 0;
  for (int k = 0; k < each; ++k) bins[x[k * n + id] & 31]++;
  for (int b = 0; b < 32; ++b) out[b * n + id] = bins[b];
}
