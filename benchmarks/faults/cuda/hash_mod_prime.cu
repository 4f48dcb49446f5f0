/*
{"fault": "integer_arithmetic", "severity": "mild", "also": [],
 "grid": [16384], "block": [256],
 "args": [{"i32": 4194304, "fill": "index"}, {"i32": 4194304}, {"long": 2147483647}, {"int": 12}]}
Modular hash with a 64-bit remainder by a run-time prime.
*/
extern "C" __global__ void hash_mod_prime(const int* __restrict__ key, int* __restrict__ out, long prime, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long h = key[i];
  for (int k = 0; k < rounds; ++k) h = (h * 48271ul + k) % (unsigned long)prime;
  out[i] = (int)h;
}
