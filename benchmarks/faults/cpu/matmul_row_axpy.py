"""Matrix product as row updates: a row of the result is read and written at every step."""

import torch

CASE = {"fault": "cpu_cache_blocking", "severity": "mild", "also": []}
SOURCE = r"""
extern "C" void matmul(const float* __restrict a, const float* __restrict b, float* __restrict c,
                       long n) {
#pragma omp parallel for
  for (long i = 0; i < n; ++i) {
    for (long j = 0; j < n; ++j) c[i * n + j] = 0.0f;
    for (long k = 0; k < n; ++k)
      for (long j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
  }
}
"""


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(1024, 1024), torch.randn(1024, 1024)]


def get_init_inputs():
    return []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from kernelpro import inline

        self.native = inline.cpp(SOURCE, flags=["-mprefer-vector-width=512"])

    def forward(self, a, b):
        c = torch.empty_like(a)
        self.native.matmul(a, b, c, a.shape[0])
        return c
