/*
{"fault": "cache_locality", "severity": "severe", "also": ["dram_bandwidth"],
 "grid": [524288], "block": [32, 8], "compulsory_bytes": 1073741824,
 "args": [{"f32": 134217728, "fill": "random"}, {"f32": 134217728}]}
Seven-point stencil on 512^3 whose blocks are visited in a scrambled order, so that the planes
shared by neighbours have left the cache when the neighbour runs.
*/
extern "C" __global__ void stencil_scrambled(const float* __restrict__ u, float* __restrict__ v) {
  const int n = 512;
  unsigned b = (blockIdx.x * 40503u) & 524287u;
  int x = (b & 15) * 32 + threadIdx.x, y = ((b >> 4) & 63) * 8 + threadIdx.y, z = b >> 10;
  long i = ((long)z * n + y) * n + x;
  float c = u[i];
  float l = x > 0 ? u[i - 1] : c, r = x < n - 1 ? u[i + 1] : c;
  float d = y > 0 ? u[i - n] : c, t = y < n - 1 ? u[i + n] : c;
  float f = z > 0 ? u[i - n * n] : c, k = z < n - 1 ? u[i + n * n] : c;
  v[i] = c + 0.1f * (l + r + d + t + f + k - 6.0f * c);
}
