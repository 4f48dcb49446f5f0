/*
{"fault": null, "severity": "clean", "also": [],
 "grid": [65536], "block": [256], "compulsory_bytes": 805306368,
 "args": [{"f32": 67108864, "fill": "random"}, {"f32": 67108864, "fill": "random"}]}
Scaled addition in place (y += a x) with 128-bit accesses.
*/
extern "C" __global__ void clean_axpy_float4(const float4* __restrict__ x, float4* __restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 a = x[i], b = y[i];
  y[i] = make_float4(fmaf(2.0f, a.x, b.x), fmaf(2.0f, a.y, b.y), fmaf(2.0f, a.z, b.z), fmaf(2.0f, a.w, b.w));
}
