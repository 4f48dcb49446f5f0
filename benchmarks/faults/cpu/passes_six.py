"""Normalisation of a large tensor in six full passes over memory."""

import torch

CASE = {"fault": "cpu_memory_bandwidth", "severity": "severe", "also": ["framework_overhead"]}
SOURCE = r"""
extern "C" void six_passes(const float* __restrict x, float* __restrict y, float* __restrict t,
                           long n) {
#pragma omp parallel for simd
  for (long i = 0; i < n; ++i) t[i] = x[i] * 1.5f;
#pragma omp parallel for simd
  for (long i = 0; i < n; ++i) y[i] = t[i] + 0.5f;
#pragma omp parallel for simd
  for (long i = 0; i < n; ++i) t[i] = y[i] * y[i];
#pragma omp parallel for simd
  for (long i = 0; i < n; ++i) y[i] = t[i] - x[i];
#pragma omp parallel for simd
  for (long i = 0; i < n; ++i) t[i] = y[i] * 0.25f;
#pragma omp parallel for simd
  for (long i = 0; i < n; ++i) y[i] = t[i] + x[i];
}
"""


class Model(torch.nn.Module):
    def forward(self, x):
        v = x * 1.5 + 0.5
        return (v * v - x) * 0.25 + x


def get_inputs():
    return [torch.randn(4096, 8192)]


def get_init_inputs():
    return []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from kernelpro import inline

        self.native = inline.cpp(SOURCE, flags=["-mprefer-vector-width=512"])

    def forward(self, x):
        y, t = torch.empty_like(x), torch.empty_like(x)
        self.native.six_passes(x, y, t, x.numel())
        return y
