# task: matmul
# accept: ok
# idea: times two ways in its first calls and keeps the quicker one
import time

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.best = None

    def forward(self, x, y):
        ways = (lambda a, b: a @ b, lambda a, b: torch.einsum("ik,kj->ij", a, b))
        if self.best is None:
            spent = []
            for way in ways:
                started = time.perf_counter()
                way(x, y)
                spent.append(time.perf_counter() - started)
            self.best = spent.index(min(spent))
        return ways[self.best](x, y)
