/*
{"fault": "tensor_core_underutilization", "severity": "mild", "also": [], "matmul": true,
 "grid": [16, 16], "block": [256],
 "args": [{"f32": 4194304, "fill": "random"}, {"f32": 4194304, "fill": "random"}, {"f32": 4194304}, {"int": 2048}]}
Single-precision product with 128 x 128 block tiles and 8 x 8 outputs a thread.
*/
extern "C" __global__ void __launch_bounds__(256) sgemm_8x8_tile(const float* __restrict__ a, const float* __restrict__ b,
                                                                 float* __restrict__ c, int n) {
  __shared__ float as[8][132], bs[8][128];
  int t = threadIdx.x, tx = t & 15, ty = t >> 4, row0 = blockIdx.y * 128, col0 = blockIdx.x * 128;
  float acc[8][8] = {};
  for (int k0 = 0; k0 < n; k0 += 8) {
    float4 va = *(const float4*)(a + (long)(row0 + (t >> 1)) * n + k0 + (t & 1) * 4);
    float4 vb = *(const float4*)(b + (long)(k0 + (t >> 5)) * n + col0 + (t & 31) * 4);
    __syncthreads();
    as[(t & 1) * 4][t >> 1] = va.x;
    as[(t & 1) * 4 + 1][t >> 1] = va.y;
    as[(t & 1) * 4 + 2][t >> 1] = va.z;
    as[(t & 1) * 4 + 3][t >> 1] = va.w;
    *(float4*)&bs[t >> 5][(t & 31) * 4] = vb;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      float ra[8], rb[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) ra[i] = as[k][ty * 8 + i];
#pragma unroll
      for (int j = 0; j < 8; ++j) rb[j] = bs[k][tx + 16 * j];
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) acc[i][j] = fmaf(ra[i], rb[j], acc[i][j]);
    }
  }
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) c[(long)(row0 + ty * 8 + i) * n + col0 + tx + 16 * j] = acc[i][j];
}
