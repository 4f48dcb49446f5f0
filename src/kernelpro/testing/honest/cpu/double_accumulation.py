# task: cumsum
# accept: ok
# idea: sums in double precision, rounded once
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x, 1, dtype=torch.float64).float()
