/*
{"fault": "uncoalesced_access", "severity": "severe", "also": ["memory_coalescing"],
 "grid": [512], "block": [256],
 "args": [{"f32": 134217728, "fill": "random"}, {"f32": 131072}, {"int": 131072}, {"int": 1024}]}
Mean of each row with one thread per row: a warp reads 32 rows at once.
*/
extern "C" __global__ void column_mean(const float* __restrict__ x, float* __restrict__ mean, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* mine = x + (long)row * columns;
  float sum = 0.0f;
  for (int j = 0; j < columns; ++j) sum += mine[j];
  mean[row] = sum / columns;
}
