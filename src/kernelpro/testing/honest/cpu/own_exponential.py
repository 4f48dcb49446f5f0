# task: softmax
# accept: ok
# idea: an exponential of its own, good to two units in the last place
# devices: cpu
import torch
from kernelpro import inline

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
static inline float ex(float x) {
  if (x < -103.9f) return 0.f;
  float n = std::nearbyint(x * 1.44269504f);
  float r = std::fma(n, -0.693145752f, x); r = std::fma(n, -1.42860677e-6f, r);
  float p = 1.f + r * (1.f + r * (0.5f + r * (0.16666667f + r * (0.041666668f + r * (0.008333334f + r * 0.0013888889f)))));
  return std::ldexp(p, (int)n);
}
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t n) {
  #pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    float top = x[r*n]; for (int64_t i = 1; i < n; ++i) top = x[r*n+i] > top ? x[r*n+i] : top;
    double s = 0; for (int64_t i = 0; i < n; ++i) { y[r*n+i] = ex(x[r*n+i] - top); s += y[r*n+i]; }
    float q = (float)(1.0 / s); for (int64_t i = 0; i < n; ++i) y[r*n+i] *= q;
  }
}
"""
m = inline.cpp(SOURCE, flags=("-ffast-math",))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        m.softmax(x, y, x.shape[0], x.shape[1])
        return y
