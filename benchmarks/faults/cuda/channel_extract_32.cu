/*
{"fault": "memory_coalescing", "severity": "severe", "also": ["uncoalesced_access"],
 "grid": [16384], "block": [256],
 "args": [{"f32": 134217728, "fill": "random"}, {"f32": 4194304}, {"int": 4194304}, {"int": 32}, {"int": 5}]}
One channel of an NHWC tensor with 32 channels: neighbouring threads read 128 bytes apart.
*/
extern "C" __global__ void channel_extract_32(const float* __restrict__ nhwc, float* __restrict__ out,
                                              int pixels, int channels, int channel) {
  int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel < pixels) out[pixel] = nhwc[(long)pixel * channels + channel] * 0.25f;
}
