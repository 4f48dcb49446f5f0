"""Textbook matrix product: rows times columns, the second operand walked down its columns."""

import torch

CASE = {"fault": "cpu_cache_blocking", "severity": "severe", "also": ["simd_width"]}
SOURCE = r"""
extern "C" void matmul(const float* a, const float* b, float* c, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; ++i)
    for (long j = 0; j < n; ++j) {
      float s = 0.0f;
      for (long k = 0; k < n; ++k) s += a[i * n + k] * b[k * n + j];
      c[i * n + j] = s;
    }
}
"""


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(768, 768), torch.randn(768, 768)]


def get_init_inputs():
    return []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from kernelpro import inline

        self.native = inline.cpp(SOURCE, flags=["-ffast-math"])

    def forward(self, a, b):
        c = torch.empty_like(a)
        self.native.matmul(a, b, c, a.shape[0])
        return c
