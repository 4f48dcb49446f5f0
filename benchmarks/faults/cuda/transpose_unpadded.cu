/*
{"fault": "shared_bank_conflicts", "severity": "severe", "also": [],
 "grid": [256, 256], "block": [32, 8],
 "args": [{"f32": 67108864, "fill": "random"}, {"f32": 67108864}, {"int": 8192}]}
Tiled transpose with a 32 x 32 tile: the column read hits one bank.
*/
extern "C" __global__ void transpose_unpadded(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float tile[32][32];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(long)(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(long)(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
