"""A parallel loop whose thread count was pinned to one while debugging, and left there."""

import torch

CASE = {"fault": "thread_scaling", "severity": "mild", "also": ["simd_width"]}
SOURCE = r"""
extern "C" void energy(const float* __restrict x, float* __restrict y, long rows, long columns) {
#pragma omp parallel for num_threads(1)
  for (long i = 0; i < rows; ++i) {
    float s = 0.0f;
#pragma omp simd reduction(+ : s)
    for (long j = 0; j < columns; ++j) {
      float v = x[i * columns + j], r = v * v + 0.25f;
      r = r * v + 0.25f;
      r = r * r + 0.5f;
      s += r * v + r;
    }
    y[i] = s;
  }
}
"""


class Model(torch.nn.Module):
    def forward(self, x):
        r = (x * x + 0.25) * x + 0.25
        r = r * r + 0.5
        return (r * x + r).sum(-1)


def get_inputs():
    return [torch.rand(4096, 4096)]


def get_init_inputs():
    return []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from kernelpro import inline

        self.native = inline.cpp(SOURCE, flags=["-ffast-math", "-mprefer-vector-width=512"])

    def forward(self, x):
        y = torch.empty(x.shape[0])
        self.native.energy(x, y, x.shape[0], x.shape[1])
        return y
