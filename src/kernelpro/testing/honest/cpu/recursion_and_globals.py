# task: linear
# accept: ok
# idea: global state, a counter and a cache of shapes, no cache of answers
import torch

COUNT = {}


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)

    def right(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        COUNT[x.shape] = COUNT.get(x.shape, 0) + 1
        return self.right(x)
