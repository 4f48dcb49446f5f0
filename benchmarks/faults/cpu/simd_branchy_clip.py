"""Soft clipping with a data-dependent early exit that keeps the loop scalar."""

import torch

CASE = {"fault": "simd_width", "severity": "severe", "also": ["scalar_math_call"]}
SOURCE = r"""
extern "C" void soft_clip(const float* x, float* y, long n) {
#pragma omp parallel for
  for (long i = 0; i < n / 4096; ++i) {
    const float* row = x + i * 4096;
    float* out = y + i * 4096;
    float last = 0.0f;
    for (long j = 0; j < 4096; ++j) {
      float v = row[j];
      if (v > 1.0f) v = 1.0f + 0.1f * (v - 1.0f);
      else if (v < -1.0f) v = -1.0f + 0.1f * (v + 1.0f);
      last = 0.5f * last + v;
      out[j] = v + 0.0f * last;
      if (last > 1e30f) break;
    }
  }
}
"""


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.where(x > 1, 1 + 0.1 * (x - 1), torch.where(x < -1, -1 + 0.1 * (x + 1), x))


def get_inputs():
    return [torch.randn(4096, 4096)]


def get_init_inputs():
    return []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from kernelpro import inline

        self.native = inline.cpp(SOURCE)

    def forward(self, x):
        y = torch.empty_like(x)
        self.native.soft_clip(x, y, x.numel())
        return y
