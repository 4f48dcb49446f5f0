/*
{"fault": "wgmma_usage", "severity": "mild", "also": [], "matmul": true,
 "grid": [32, 32], "block": [256],
 "args": [{"f16": 16777216, "fill": "random"}, {"f16": 16777216, "fill": "random"}, {"f32": 16777216}, {"int": 4096}]}
128 x 128 block tiles in padded shared memory, mma.sync by eight warps, next tile prefetched in registers.
*/
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void __launch_bounds__(256) wmma_tiled(const __half* __restrict__ a, const __half* __restrict__ b,
                                                             float* __restrict__ c, int n) {
  __shared__ __align__(16) __half as[128][40];
  __shared__ __align__(16) __half bs[32][136];
  int t = threadIdx.x, warp = t >> 5, wr = (warp >> 2) * 64, wc = (warp & 3) * 32;
  int row0 = blockIdx.y * 128, col0 = blockIdx.x * 128;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[4][2];
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(acc[i][j], 0.0f);
  uint4 ra[2], rb[2];
  auto fetch = [&](int k) {
    for (int i = 0; i < 2; ++i) {
      int e = t + i * 256;
      ra[i] = *reinterpret_cast<const uint4*>(a + (long)(row0 + (e >> 2)) * n + k + (e & 3) * 8);
      rb[i] = *reinterpret_cast<const uint4*>(b + (long)(k + (e >> 4)) * n + col0 + (e & 15) * 8);
    }
  };
  fetch(0);
  for (int k = 0; k < n; k += 32) {
    for (int i = 0; i < 2; ++i) {
      int e = t + i * 256;
      *reinterpret_cast<uint4*>(&as[e >> 2][(e & 3) * 8]) = ra[i];
      *reinterpret_cast<uint4*>(&bs[e >> 4][(e & 15) * 8]) = rb[i];
    }
    __syncthreads();
    if (k + 32 < n) fetch(k + 32);
#pragma unroll
    for (int kk = 0; kk < 32; kk += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa[4];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb[2];
      for (int i = 0; i < 4; ++i) wmma::load_matrix_sync(fa[i], &as[wr + i * 16][kk], 40);
      for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(fb[j], &bs[kk][wc + j * 16], 136);
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 2; ++j) wmma::mma_sync(acc[i][j], fa[i], fb[j], acc[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 2; ++j)
      wmma::store_matrix_sync(c + (long)(row0 + wr + i * 16) * n + col0 + wc + j * 16, acc[i][j], n,
                              wmma::mem_row_major);
}
