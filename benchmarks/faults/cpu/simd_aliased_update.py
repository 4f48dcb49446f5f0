"""In-place style recurrence over possibly aliasing pointers, built without vectorisation."""

import torch

CASE = {"fault": "simd_width", "severity": "mild", "also": []}
SOURCE = r"""
extern "C" void blend(const float* x, const float* w, float* y, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; i += 4096)
    for (long j = i; j < i + 4096; ++j) {
      float a = x[j], b = w[j];
      float p = a * b + 0.5f, q = a - b;
      for (int k = 0; k < 6; ++k) { p = p * 0.9f + q; q = q * 0.8f - p * 0.1f; }
      y[j] = p + q;
    }
}
"""


class Model(torch.nn.Module):
    def forward(self, x, w):
        p, q = x * w + 0.5, x - w
        for _ in range(6):
            p = p * 0.9 + q
            q = q * 0.8 - p * 0.1
        return p + q


def get_inputs():
    return [torch.randn(2048, 4096), torch.randn(2048, 4096)]


def get_init_inputs():
    return []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from kernelpro import inline

        self.native = inline.cpp(SOURCE, flags=["-fno-tree-vectorize"])

    def forward(self, x, w):
        y = torch.empty_like(x)
        self.native.blend(x, w, y, x.numel())
        return y
