/*
{"fault": "wgmma_usage", "severity": "severe", "also": [], "matmul": true,
 "grid": [32, 32], "block": [128],
 "args": [{"f16": 4194304, "fill": "random"}, {"f16": 4194304, "fill": "random"}, {"f32": 4194304}, {"int": 2048}]}
64 x 64 block tiles in shared memory, mma.sync by four warps, loads and products in turn.
*/
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void wmma_64_tile(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ c, int n) {
  __shared__ __align__(16) __half as[64][40], bs[32][72];
  int t = threadIdx.x, warp = t >> 5, wr = (warp >> 1) * 32, wc = (warp & 1) * 32;
  int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[2][2];
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(acc[i][j], 0.0f);
  for (int k0 = 0; k0 < n; k0 += 32) {
    for (int i = t; i < 256; i += 128) {
      *(uint4*)&as[i >> 2][(i & 3) * 8] = *(const uint4*)(a + (long)(row0 + (i >> 2)) * n + k0 + (i & 3) * 8);
      *(uint4*)&bs[i >> 3][(i & 7) * 8] = *(const uint4*)(b + (long)(k0 + (i >> 3)) * n + col0 + (i & 7) * 8);
    }
    __syncthreads();
    for (int k = 0; k < 32; k += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb[2];
      for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(fa[i], &as[wr + 16 * i][k], 40);
      for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(fb[j], &bs[k][wc + 16 * j], 72);
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) wmma::mma_sync(acc[i][j], fa[i], fb[j], acc[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      wmma::store_matrix_sync(c + (long)(row0 + wr + 16 * i) * n + col0 + wc + 16 * j, acc[i][j], n, wmma::mem_row_major);
}
