"""Row sums in strict floating-point order: one accumulator, one element at a time."""

import torch

CASE = {"fault": "simd_width", "severity": "severe", "also": ["cpu_memory_bandwidth"]}
SOURCE = r"""
extern "C" void row_sum(const float* x, float* y, long rows, long columns) {
#pragma omp parallel for
  for (long i = 0; i < rows; ++i) {
    float s = 0.0f;
    for (long j = 0; j < columns; ++j) s += x[i * columns + j] * x[i * columns + j];
    y[i] = s;
  }
}
"""


class Model(torch.nn.Module):
    def forward(self, x):
        return (x * x).sum(-1)


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
        y = torch.empty(x.shape[0])
        self.native.row_sum(x, y, x.shape[0], x.shape[1])
        return y
