# task: top_k
# accept: ok
# idea: outputs that are views of one tensor
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        values, indices = torch.topk(x, 16, dim=1)
        return values[:, :8], indices[:, :8]
