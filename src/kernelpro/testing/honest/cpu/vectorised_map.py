# task: linear_norm
# accept: ok
# idea: torch.func: vmap over functional_call
# devices: cpu
import torch
from torch.func import functional_call, vmap


class Inner(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, n)
        self.norm = torch.nn.LayerNorm(n)

    def forward(self, x):
        return self.norm(self.linear(x))


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, n)
        self.norm = torch.nn.LayerNorm(n)
        self.__dict__["inner"] = Inner(n).to("meta")

    def forward(self, x):
        state = dict(self.named_parameters())
        return vmap(lambda row: functional_call(self.__dict__["inner"], state, (row,)))(x)
