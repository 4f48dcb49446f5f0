/*
{"fault": "integer_arithmetic", "severity": "severe", "also": [],
 "grid": [8192], "block": [256],
 "args": [{"i32": 2097152, "fill": "random", "below": 2000000000}, {"i32": 2097152}, {"int": 1000003}, {"int": 12}]}
Rolling hash with a 64-bit remainder by a run-time prime in every round.
*/
extern "C" __global__ void shuffle_bits_modulo(const int* __restrict__ x, int* __restrict__ y, int prime, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long h = (unsigned)x[i], p = (unsigned)prime;
  for (int k = 0; k < rounds; ++k) h = (h * 31ull + (unsigned)(i ^ k)) % p;
  y[i] = (int)h;
}
