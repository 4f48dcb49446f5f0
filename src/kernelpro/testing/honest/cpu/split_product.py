# task: matmul
# accept: ok
# idea: the product from four partial sums
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        return sum(a @ b for a, b in zip(x.chunk(4, 1), y.chunk(4, 0)))
