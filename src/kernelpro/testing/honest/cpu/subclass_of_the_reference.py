# task: channels_last_in
# accept: ok
# idea: C++ that follows the strides it is given
# devices: cpu
import torch
from kernelpro import inline

SOURCE = r"""
#include <cstdint>
extern "C" void run(const float* x, const float* mean, const float* gain, float* y, int64_t rows, int64_t c) {
  #pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < c; ++i) y[r*c+i] = (x[r*c+i] - mean[i]) * gain[i];
}
"""
m = inline.cpp(SOURCE, functions=["run"], flags=["-O3", "-march=native", "-fopenmp"])


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.register_buffer("mean", torch.linspace(0, 1, channels).view(1, -1, 1, 1))
        self.register_buffer("scratch", torch.zeros(3), persistent=False)
        self.gain = torch.nn.Parameter(torch.rand(channels))

    def forward(self, x):
        return (x - self.mean) * self.gain.view(1, -1, 1, 1)


class ModelNew(Model):
    """Subclass of the reference; another path for one layout."""

    def forward(self, x):
        if not x.is_contiguous(memory_format=torch.channels_last):
            return super().forward(x)
        y = torch.empty_like(x)
        m.run(x, self.mean, self.gain, y, x.numel() // x.shape[1], x.shape[1])
        return y
