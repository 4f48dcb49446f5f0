# task: masked
# accept: ok
# idea: infinities that the reference has as well, in C++ by rows
# devices: cpu
import torch
from kernelpro import inline

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <limits>
extern "C" void masked(const float* x, const bool* m, float* p, float* y, int64_t rows, int64_t n) {
  #pragma omp parallel for num_threads(3) schedule(dynamic, 4)
  for (int64_t r = 0; r < rows; ++r) {
    float top = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < n; ++i) { float v = m[r*n+i] ? -std::numeric_limits<float>::infinity() : x[r*n+i]; y[r*n+i] = v; if (v > top) top = v; }
    double s = 0; for (int64_t i = 0; i < n; ++i) { p[r*n+i] = std::exp(y[r*n+i] - top); s += p[r*n+i]; }
    for (int64_t i = 0; i < n; ++i) p[r*n+i] = (float)(p[r*n+i] / s);
  }
}
"""
m = inline.cpp(SOURCE, flags=("-O2",))


class ModelNew(torch.nn.Module):
    def forward(self, x, mask):
        p, y = torch.empty_like(x), torch.empty_like(x)
        m.masked(x, mask, p, y, x.shape[0], x.shape[1])
        return p, y
