# task: attention
# accept: ok
# idea: attention from two products and a softmax
import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        weights = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1)
        return weights @ v
