"""Linear layer and softmax over its outputs."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        return torch.softmax(self.linear(x), dim=-1)


def get_inputs():
    return [torch.randn(192, 96) * (0.5 + 2.0 * torch.rand(192, 1))]


def get_init_inputs():
    return [96, 192]
