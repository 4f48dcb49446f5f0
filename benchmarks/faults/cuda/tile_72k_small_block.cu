/*
{"fault": "occupancy_limiter", "severity": "mild", "also": [],
 "grid": [396], "block": [128], "shared": 73728,
 "args": [{"f32": 18432, "fill": "random"}, {"f32": 67108864, "fill": "random"}, {"f32": 67108864}, {"int": 67108864}]}
72 KiB of coefficients a block of 128 threads: twelve warps an SM.
*/
extern "C" __global__ void tile_72k_small_block(const float* __restrict__ table, const float* __restrict__ x,
                                                float* __restrict__ y, int n) {
  extern __shared__ float coefficient[];
  for (int i = threadIdx.x; i < 18432; i += blockDim.x) coefficient[i] = table[i];
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = x[i] * coefficient[i % 18432];
}
