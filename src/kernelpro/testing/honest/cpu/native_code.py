# task: linear
# accept: ok
# idea: C++ through kernelpro.inline
# pace: fast
# devices: cpu
import torch
from kernelpro import inline

SOURCE = r"""
#include <cstdint>
extern "C" void bias_relu(float* y, const float* b, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
            float v = y[i * columns + j] + b[j];
            y[i * columns + j] = v > 0.0f || v != v ? v : 0.0f;
        }
}
"""
module = inline.cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)

    def forward(self, x):
        y = x @ self.linear.weight.t()
        module.bias_relu(y, self.linear.bias, y.shape[0], y.shape[1])
        return y
