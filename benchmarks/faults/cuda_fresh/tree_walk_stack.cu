/*
{"fault": "local_memory_indexing", "severity": "severe", "also": [],
 "grid": [4096], "block": [128],
 "args": [{"f32": 524288, "fill": "random"}, {"f32": 524288}, {"int": 40}]}
Depth-first walk of an implicit tree with an explicit stack per thread, indexed by its height.
*/
extern "C" __global__ void tree_walk_stack(const float* __restrict__ x, float* __restrict__ y, int visits) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, stack[32], top = 0, node = 1;
  float v = x[i], sum = 0.0f;
  stack[top++] = 1;
  for (int k = 0; k < visits && top > 0; ++k) {
    node = stack[--top];
    sum += v * node;
    if (top < 29) {
      stack[top] = (2 * node) & 0xffff;
      stack[top + 1] = (2 * node + 1) & 0xffff;
      top += 1 + ((node + i) & 1);
    }
  }
  y[i] = sum;
}
