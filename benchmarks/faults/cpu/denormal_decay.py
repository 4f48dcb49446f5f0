"""A decaying product over many steps: most values end up subnormal."""

import torch

CASE = {"fault": "denormals", "severity": "severe", "also": []}
SOURCE = r"""
extern "C" void decay(const float* x, float* y, long n) {
#pragma omp parallel for simd
  for (long i = 0; i < n; ++i) {
    float v = x[i];
    for (int k = 0; k < 40; ++k) v = v * 0.35f + 1e-44f;
    y[i] = v;
  }
}
"""


class Model(torch.nn.Module):
    def forward(self, x):
        v = x
        for _ in range(40):
            v = v * 0.35 + 1e-44
        return v


def get_inputs():
    return [torch.rand(1024, 4096) * 1e-20]


def get_init_inputs():
    return []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from kernelpro import inline

        self.native = inline.cpp(SOURCE)

    def forward(self, x):
        y = torch.empty_like(x)
        self.native.decay(x, y, x.numel())
        return y
