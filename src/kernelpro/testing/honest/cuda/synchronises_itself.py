# task: matmul
# accept: ok
# idea: waits for the device before it returns
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        z = x @ y
        torch.cuda.synchronize()
        return z
