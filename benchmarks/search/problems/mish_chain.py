"""A chain of element-wise functions, several of them transcendental."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        y = torch.tanh(F.softplus(x)) * x
        return y * torch.sigmoid(y) + 0.1 * torch.sin(x)


def get_inputs():
    return [torch.randn(128, 1024) * 2.0]


def get_init_inputs():
    return []
