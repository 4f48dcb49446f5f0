# task: top_k
# accept: ok
# idea: top-k from a stable sort
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        values, indices = torch.sort(x, dim=1, descending=True, stable=True)
        return values[:, :8], indices[:, :8]
