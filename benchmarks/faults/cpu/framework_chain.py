"""Six framework operators around a tiny native one."""

import torch

CASE = {"fault": "framework_overhead", "severity": "severe", "also": ["cpu_memory_bandwidth"]}
SOURCE = r"""
extern "C" void halve(float* x, long n) {
#pragma omp parallel for simd
  for (long i = 0; i < n; ++i) x[i] *= 0.5f;
}
"""


class Model(torch.nn.Module):
    def forward(self, x):
        return 0.5 * torch.relu(torch.sigmoid(x * 2 + 1) * x - 0.1)


def get_inputs():
    return [torch.randn(4096, 4096)]


def get_init_inputs():
    return []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from kernelpro import inline

        self.native = inline.cpp(SOURCE)

    def forward(self, x):
        y = torch.relu(torch.sigmoid(x * 2 + 1) * x - 0.1)
        self.native.halve(y, y.numel())
        return y
