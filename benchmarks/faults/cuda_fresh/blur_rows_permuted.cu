/*
{"fault": "cache_locality", "severity": "severe", "also": ["dram_bandwidth"],
 "grid": [65536], "block": [256], "compulsory_bytes": 1073741824,
 "args": [{"f32": 134217728, "fill": "random"}, {"f32": 134217728}]}
Vertical nine-tap blur of rows of 8192, rows visited in a scattered order: taps come from DRAM again.
*/
extern "C" __global__ void blur_rows_permuted(const float4* __restrict__ x, float4* __restrict__ y) {
  unsigned block = (blockIdx.x * 40503u) & 65535u;
  int row = block >> 2, column = (block & 3) * 512 + threadIdx.x;
  for (int half = 0; half < 2; ++half, column += 256) {
    float4 s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int d = -4; d <= 4; ++d) {
      int r = min(max(row + d, 0), 16383);
      float4 v = x[(long)r * 2048 + column];
      s.x += v.x; s.y += v.y; s.z += v.z; s.w += v.w;
    }
    y[(long)row * 2048 + column] = make_float4(s.x / 9, s.y / 9, s.z / 9, s.w / 9);
  }
}
