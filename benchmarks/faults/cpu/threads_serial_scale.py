"""A large element-wise loop on one thread."""

import torch

CASE = {"fault": "thread_scaling", "severity": "severe", "also": []}
SOURCE = r"""
extern "C" void poly(const float* x, float* y, long n) {
#pragma omp simd
  for (long i = 0; i < n; ++i) {
    float v = x[i], r = 0.3f;
#pragma GCC unroll 24
    for (int k = 0; k < 24; ++k) r = r * v + 0.1f;
    y[i] = r;
  }
}
"""


class Model(torch.nn.Module):
    def forward(self, x):
        r = torch.full_like(x, 0.3)
        for _ in range(24):
            r = r * x + 0.1
        return r


def get_inputs():
    return [torch.rand(4096, 2048)]


def get_init_inputs():
    return []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from kernelpro import inline

        self.native = inline.cpp(SOURCE)

    def forward(self, x):
        y = torch.empty_like(x)
        self.native.poly(x, y, x.numel())
        return y
