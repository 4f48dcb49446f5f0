/*
{"fault": null, "severity": "clean",
 "grid": [256, 256], "block": [32, 8], "compulsory_bytes": 536870912,
 "args": [{"f32": 67108864, "fill": "random"}, {"f32": 67108864}, {"int": 8192}]}
Tiled transpose with a padded tile.
*/
extern "C" __global__ void clean_transpose_padded(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(long)(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
  for (int j = 0; j < 32; j += 8) out[(long)(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
