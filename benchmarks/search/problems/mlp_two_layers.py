"""Two linear layers with a ReLU between them and a sigmoid after."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, outputs)

    def forward(self, x):
        return torch.sigmoid(self.second(F.relu(self.first(x))))


def get_inputs():
    return [torch.randn(128, 96)]


def get_init_inputs():
    return [96, 192, 96]
