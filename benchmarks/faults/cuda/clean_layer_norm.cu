/*
{"fault": null, "severity": "clean",
 "grid": [32768], "block": [256], "compulsory_bytes": 1073741824,
 "args": [{"f32": 134217728, "fill": "random"}, {"f32": 134217728}]}
Layer norm of rows of 4096, the row kept in registers between its two uses.
*/
extern "C" __global__ void clean_layer_norm(const float4* __restrict__ x, float4* __restrict__ y) {
  __shared__ float part[2][8];
  const float4* row = x + (long)blockIdx.x * 1024;
  float4 v[4];
  float s = 0.0f, q = 0.0f;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    v[k] = row[threadIdx.x + k * 256];
    s += v[k].x + v[k].y + v[k].z + v[k].w;
    q += v[k].x * v[k].x + v[k].y * v[k].y + v[k].z * v[k].z + v[k].w * v[k].w;
  }
  for (int d = 16; d; d >>= 1) {
    s += __shfl_xor_sync(~0u, s, d);
    q += __shfl_xor_sync(~0u, q, d);
  }
  if ((threadIdx.x & 31) == 0) {
    part[0][threadIdx.x >> 5] = s;
    part[1][threadIdx.x >> 5] = q;
  }
  __syncthreads();
  s = q = 0.0f;
#pragma unroll
  for (int w = 0; w < 8; ++w) {
    s += part[0][w];
    q += part[1][w];
  }
  float mean = s / 4096.0f, scale = rsqrtf(q / 4096.0f - mean * mean + 1e-5f);
  float4* out = y + (long)blockIdx.x * 1024;
#pragma unroll
  for (int k = 0; k < 4; ++k)
    out[threadIdx.x + k * 256] = make_float4((v[k].x - mean) * scale, (v[k].y - mean) * scale,
                                             (v[k].z - mean) * scale, (v[k].w - mean) * scale);
}
