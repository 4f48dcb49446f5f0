"""Softplus with log1pf and expf called per element."""

import torch

CASE = {"fault": "scalar_math_call", "severity": "mild", "also": ["simd_width"]}
SOURCE = r"""
#include <cmath>
extern "C" void softplus(const float* x, float* y, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; ++i) y[i] = x[i] > 20.0f ? x[i] : log1pf(expf(x[i]));
}
"""


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.softplus(x)


def get_inputs():
    return [torch.randn(2048, 4096)]


def get_init_inputs():
    return []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from kernelpro import inline

        self.native = inline.cpp(SOURCE)

    def forward(self, x):
        y = torch.empty_like(x)
        self.native.softplus(x, y, x.numel())
        return y
