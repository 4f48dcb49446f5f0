# task: expanded
# accept: ok
# idea: expanded and transposed inputs, a 0-d input
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, w, s):
        return torch.einsum("bij,ij->bi", x, w) + s
