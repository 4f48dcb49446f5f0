# task: dynamic
# accept: ok
# idea: outputs whose shapes depend on values
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, k):
        s, _ = torch.sort(k)
        v, c = torch.unique_consecutive(s, return_counts=True)
        return torch.masked_select(x, x > 0.5), (x > 2.0).nonzero(), v, c
