# task: linear
# accept: ok
# idea: a pool of outputs, reused only when nobody holds them any more
# devices: cpu
import sys
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)
        self.pool = []

    def take(self, shape):
        for i in range(len(self.pool)):
            if sys.getrefcount(self.pool[i]) == 2 and self.pool[i].shape == shape:
                return self.pool[i]
        self.pool.append(torch.empty(shape))
        return self.pool[-1]

    def forward(self, x):
        out = self.take((x.shape[0], 256))
        torch.addmm(self.linear.bias, x, self.linear.weight.t(), out=out)
        return out.relu_()
