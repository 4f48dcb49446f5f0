# task: three_shapes
# accept: ok
# idea: several shapes, native code with a tail
# devices: cpu
import torch
from kernelpro import inline

SOURCE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>
extern "C" int softmax(const float* __restrict x, float* __restrict y, int64_t rows, int64_t n) {
  if (rows <= 0 || n <= 0) return 1;
  #pragma omp parallel
  #pragma omp single
  for (int64_t r = 0; r < rows; ++r) {
    #pragma omp task firstprivate(r)
    {
      const float* a = x + r * n; float* b = y + r * n;
      float top = *std::max_element(a, a + n), s[8] = {0};
      int64_t i = 0;
      for (; i + 8 <= n; i += 8) for (int k = 0; k < 8; ++k) { b[i+k] = std::exp(a[i+k] - top); s[k] += b[i+k]; }
      float total = 0; for (int k = 0; k < 8; ++k) total += s[k];
      for (; i < n; ++i) { b[i] = std::exp(a[i] - top); total += b[i]; }
      for (i = 0; i < n; ++i) b[i] /= total;
    }
  }
  return 0;
}
"""
m = inline.cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape)
        m.softmax(x, y, x.numel() // x.shape[-1], x.shape[-1])
        return y
