"""Softmax over the last dimension."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(128, 1024) * (0.5 + 2.0 * torch.rand(128, 1))]


def get_init_inputs():
    return []
