/*
{"fault": "tensor_core_underutilization", "severity": "mild", "also": [], "matmul": true,
 "grid": [32, 32], "block": [256],
 "args": [{"f32": 4194304, "fill": "random"}, {"f32": 4194304, "fill": "random"}, {"f32": 4194304}, {"int": 2048}]}
Single-precision matrix product with 64 x 64 block tiles and 4 x 4 outputs a thread.
*/
extern "C" __global__ void __launch_bounds__(256) sgemm_register_tile(const float* __restrict__ a,
                                                                      const float* __restrict__ b,
                                                                      float* __restrict__ c, int n) {
  __shared__ float as[16][68], bs[16][68];
  int t = threadIdx.x, tx = t & 15, ty = t >> 4, row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
  float acc[4][4] = {};
  for (int k = 0; k < n; k += 16) {
    for (int i = t; i < 1024; i += 256) {
      as[i & 15][i >> 4] = a[(row0 + (i >> 4)) * n + k + (i & 15)];
      bs[i >> 6][i & 63] = b[(k + (i >> 6)) * n + col0 + (i & 63)];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      float4 u = *reinterpret_cast<float4*>(&as[i][ty * 4]), v = *reinterpret_cast<float4*>(&bs[i][tx * 4]);
      float p[4] = {u.x, u.y, u.z, u.w}, q[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int m = 0; m < 4; ++m)
#pragma unroll
        for (int l = 0; l < 4; ++l) acc[m][l] = fmaf(p[m], q[l], acc[m][l]);
    }
    __syncthreads();
  }
  for (int m = 0; m < 4; ++m)
    *reinterpret_cast<float4*>(&c[(row0 + ty * 4 + m) * n + col0 + tx * 4]) =
        make_float4(acc[m][0], acc[m][1], acc[m][2], acc[m][3]);
}
