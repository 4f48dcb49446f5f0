"""Rows divided by their own norm, the division and root inside the element loop."""

import torch

CASE = {"fault": "loop_division", "severity": "severe", "also": ["cpu_memory_bandwidth"]}
SOURCE = r"""
#include <cmath>
extern "C" void ratio(const float* x, const float* w, float* y, long n) {
#pragma omp parallel for simd
  for (long i = 0; i < n; ++i) {
    float a = x[i], b = w[i];
    float r = a / (b + 2.0f);
    r = sqrtf(r * r + 1.0f) / (b * b + 1.0f) + 1.0f / (r * r + 3.0f);
    y[i] = r / (a * a + 0.5f);
  }
}
"""


class Model(torch.nn.Module):
    def forward(self, x, w):
        r = x / (w + 2)
        r = torch.sqrt(r * r + 1) / (w * w + 1) + 1 / (r * r + 3)
        return r / (x * x + 0.5)


def get_inputs():
    return [torch.rand(2048, 4096), torch.rand(2048, 4096)]


def get_init_inputs():
    return []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from kernelpro import inline

        self.native = inline.cpp(SOURCE, flags=["-fno-math-errno"])

    def forward(self, x, w):
        y = torch.empty_like(x)
        self.native.ratio(x, w, y, x.numel())
        return y
