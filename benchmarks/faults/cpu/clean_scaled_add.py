"""One vectorised, threaded pass over large tensors."""

import torch

CASE = {"fault": None, "severity": "clean", "also": []}
SOURCE = r"""
extern "C" void scaled_add(const float* __restrict x, const float* __restrict w,
                           float* __restrict y, long n) {
#pragma omp parallel for simd
  for (long i = 0; i < n; ++i) y[i] = 1.5f * x[i] + w[i];
}
"""


class Model(torch.nn.Module):
    def forward(self, x, w):
        return 1.5 * x + w


def get_inputs():
    return [torch.randn(8192, 8192), torch.randn(8192, 8192)]


def get_init_inputs():
    return []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from kernelpro import inline

        self.native = inline.cpp(SOURCE, flags=["-mprefer-vector-width=512"])

    def forward(self, x, w):
        if not hasattr(self, "out"):
            self.out = torch.empty_like(x)
        self.native.scaled_add(x, w, self.out, x.numel())
        return self.out
