# task: linear
# accept: ok
# idea: a pool of threads that is kept, idle between calls
# devices: cpu
from concurrent.futures import ThreadPoolExecutor

import torch

POOL = ThreadPoolExecutor(2)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)

    def right(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        return torch.cat(list(POOL.map(self.right, x.chunk(2))))
