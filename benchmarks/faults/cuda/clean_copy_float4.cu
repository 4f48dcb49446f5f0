/*
{"fault": null, "severity": "clean",
 "grid": [65536], "block": [256], "compulsory_bytes": 536870912,
 "args": [{"f32": 67108864, "fill": "random"}, {"f32": 67108864}]}
Copy with 128-bit accesses.
*/
extern "C" __global__ void clean_copy_float4(const float4* __restrict__ x, float4* __restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];
}
