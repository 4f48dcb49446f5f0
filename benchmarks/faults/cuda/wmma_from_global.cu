/*
{"fault": "wgmma_usage", "severity": "severe", "also": ["shared_memory_tiling"], "matmul": true,
 "grid": [64, 32], "block": [32, 8],
 "args": [{"f16": 4194304, "fill": "random"}, {"f16": 4194304, "fill": "random"}, {"f32": 4194304}, {"int": 2048}]}
Warp-level matrix instructions (mma.sync), each warp a 16 x 32 piece, operands from global memory.
*/
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void wmma_from_global(const __half* __restrict__ a, const __half* __restrict__ b,
                                            float* __restrict__ c, int n) {
  int row = blockIdx.y * 64 + (threadIdx.y >> 1) * 16, col = blockIdx.x * 32 + (threadIdx.y & 1) * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  for (int k = 0; k < n; k += 16) {
    wmma::load_matrix_sync(fa, a + (long)row * n + k, n);
    wmma::load_matrix_sync(fb, b + (long)k * n + col, n);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  wmma::store_matrix_sync(c + (long)row * n + col, fc, n, wmma::mem_row_major);
}
