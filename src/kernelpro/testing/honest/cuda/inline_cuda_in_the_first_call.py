# task: relu
# accept: ok
# idea: compiled in the first call
import torch
from kernelpro import inline

SOURCE = r"""
extern "C" __global__ void relu(float* y, const float* x, long n) {
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x)
        y[i] = x[i] > 0.0f || x[i] != x[i] ? x[i] : 0.0f;
}
"""


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.module = None

    def forward(self, x):
        if self.module is None:
            self.module = inline.cuda(SOURCE)
        y = torch.empty_like(x)
        self.module.kernel("relu")[(x.numel() + 255) // 256, 256](y, x, x.numel())
        return y
