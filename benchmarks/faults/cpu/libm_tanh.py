"""GELU (tanh form) with one call of tanhf per element."""

import torch

CASE = {"fault": "scalar_math_call", "severity": "severe", "also": ["simd_width"]}
SOURCE = r"""
#include <cmath>
extern "C" void gelu(const float* x, float* y, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; ++i)
    y[i] = 0.5f * x[i] * (1.0f + tanhf(0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}
"""


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x, approximate="tanh")


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
        self.native.gelu(x, y, x.numel())
        return y
