/*
{"fault": "barrier_stall", "severity": "severe", "also": [],
 "grid": [528], "block": [1024],
 "args": [{"f32": 34603008, "fill": "random"}, {"f32": 33792}, {"int": 64}]}
64 sums a block, each by a shared-memory tree with a barrier at every level.
*/
extern "C" __global__ void reduce_many_barriers(const float* __restrict__ x, float* __restrict__ sums, int rows) {
  __shared__ float s[1024];
  int t = threadIdx.x;
  for (int r = 0; r < rows; ++r) {
    s[t] = x[((long)blockIdx.x * rows + r) * 1024 + t];
    __syncthreads();
    for (int d = 512; d > 0; d >>= 1) {
      if (t < d) s[t] += s[t + d];
      __syncthreads();
    }
    if (t == 0) sums[blockIdx.x * rows + r] = s[0];
    __syncthreads();
  }
}
