/*
{"fault": "integer_arithmetic", "severity": "severe", "also": [],
 "grid": [32768], "block": [256],
 "args": [{"f32": 8388608, "fill": "random"}, {"f32": 8388608}, {"int": 8}, {"int": 16}, {"int": 8}, {"int": 32}, {"int": 16}, {"int": 16}]}
Roll in five dimensions with run-time extents: five divisions and remainders for every element.
*/
extern "C" __global__ void permute_divmod(const float* __restrict__ x, float* __restrict__ y, int a, int b, int c,
                                          int d, int e, int f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int r = i, i5 = r % f;
  r /= f;
  int i4 = r % e;
  r /= e;
  int i3 = r % d;
  r /= d;
  int i2 = r % c;
  r /= c;
  int i1 = r % b, i0 = r / b;
  int j = ((((i0 * b + (i1 + 1) % b) * c + (i2 + 1) % c) * d + (i3 + 2) % d) * e + (i4 + 1) % e) * f + i5;
  y[i] = x[j];
}
