# task: relu
# accept: ok
# idea: C++ that is compiled in the first call
# devices: cpu
import torch
from kernelpro import inline

SOURCE = r"""
#include <cstdint>
extern "C" void relu(float* y, const float* x, int64_t count) {
#pragma omp parallel for
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] > 0.0f || x[i] != x[i] ? x[i] : 0.0f;
}
"""


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.module = None

    def forward(self, x):
        if self.module is None:
            self.module = inline.cpp(SOURCE)
        y = torch.empty_like(x)
        self.module.relu(y, x, x.numel())
        return y
