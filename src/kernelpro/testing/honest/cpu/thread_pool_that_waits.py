# task: linear
# accept: ok
# idea: a pool of threads, joined in every call
# devices: cpu
from concurrent.futures import ThreadPoolExecutor

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)

    def right(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        with ThreadPoolExecutor(2) as pool:
            halves = list(pool.map(self.right, x.chunk(2)))
        return torch.cat(halves)
