"""Group norm and SiLU of an image."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gain = nn.Parameter(1.0 + 0.2 * torch.randn(channels))
        self.shift = nn.Parameter(0.2 * torch.randn(channels))

    def forward(self, x):
        return F.silu(F.group_norm(x, 8, self.gain, self.shift))


def get_inputs():
    scale = 0.5 + torch.rand(4, 32, 1, 1)
    return [torch.randn(4, 32, 32, 32) * scale + torch.randn(4, 32, 1, 1)]


def get_init_inputs():
    return [32]
