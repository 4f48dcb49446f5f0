"""Scaling of data that arrives subnormal."""

import torch

CASE = {"fault": "denormals", "severity": "mild", "also": []}
SOURCE = r"""
extern "C" void scale(const float* x, float* y, long n) {
#pragma omp parallel for simd
  for (long i = 0; i < n; ++i) y[i] = x[i] * 0.75f + x[i] * x[i];
}
"""


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 0.75 + x * x


def get_inputs():
    return [torch.rand(2048, 4096) * 1e-39]


def get_init_inputs():
    return []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from kernelpro import inline

        self.native = inline.cpp(SOURCE)

    def forward(self, x):
        y = torch.empty_like(x)
        self.native.scale(x, y, x.numel())
        return y
