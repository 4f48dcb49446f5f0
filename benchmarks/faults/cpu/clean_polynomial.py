"""Vectorised, threaded polynomial of high degree: at the FMA rate."""

import torch

CASE = {"fault": None, "severity": "clean", "also": []}
SOURCE = r"""
extern "C" void poly(const float* __restrict x, float* __restrict y, long n) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < n; i += 64) {
    float r[64], v[64];
    for (int l = 0; l < 64; ++l) { v[l] = x[i + l]; r[l] = 0.3f; }
    for (int k = 0; k < 512; ++k)
      for (int l = 0; l < 64; ++l) r[l] = r[l] * v[l] + 0.1f;
    for (int l = 0; l < 64; ++l) y[i + l] = r[l];
  }
}
"""


class Model(torch.nn.Module):
    def forward(self, x):
        r = torch.full_like(x, 0.3)
        for _ in range(512):
            r = r * x + 0.1
        return r


def get_inputs():
    return [torch.rand(512, 4096) * 0.9]


def get_init_inputs():
    return []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from kernelpro import inline

        self.native = inline.cpp(SOURCE, flags=["-mprefer-vector-width=512", "-ffast-math"])

    def forward(self, x):
        y = torch.empty_like(x)
        self.native.poly(x, y, x.numel())
        return y
