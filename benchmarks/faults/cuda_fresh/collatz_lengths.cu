/*
{"fault": "warp_divergence", "severity": "severe", "also": [],
 "grid": [8192], "block": [256],
 "args": [{"i32": 2097152, "fill": "random", "below": 1000000000}, {"i32": 2097152}]}
Collatz lengths of random numbers: lanes branch on parity and stop at different times.
*/
extern "C" __global__ void collatz_lengths(const int* __restrict__ x, int* __restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, n = 0;
  unsigned long long v = (unsigned)x[i] + 1u;
  while (v != 1 && n < 600) {
    if (v & 1) v = 3 * v + 1;
    else v >>= 1;
    ++n;
  }
  y[i] = n;
}
