/*
{"fault": "memory_coalescing", "severity": "severe", "also": ["uncoalesced_access", "cache_locality"],
 "grid": [65536], "block": [256],
 "args": [{"f32": 67108864, "fill": "random"}, {"i32": 16777216, "fill": "random", "below": 67108864}, {"f32": 16777216}]}
Single floats picked from 256 MB by a random index.
*/
extern "C" __global__ void gather_channels_random(const float* __restrict__ x, const int* __restrict__ index, float* __restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[index[i]] * 2.0f;
}
