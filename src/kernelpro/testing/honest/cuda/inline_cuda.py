# task: relu
# accept: ok
# idea: CUDA C++ through kernelpro.inline
import torch
from kernelpro import inline

SOURCE = r"""
extern "C" __global__ void relu(float* y, const float* x, long n) {
    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f || x[i] != x[i] ? x[i] : 0.0f;
}
"""
module = inline.cuda(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        module.kernel("relu")[(x.numel() + 255) // 256, 256](y, x, x.numel())
        return y
