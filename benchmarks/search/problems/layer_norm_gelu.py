"""GELU of a layer norm with gain and shift."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.gain = nn.Parameter(1.0 + 0.2 * torch.randn(features))
        self.shift = nn.Parameter(0.2 * torch.randn(features))

    def forward(self, x):
        return F.gelu(F.layer_norm(x, x.shape[-1:], self.gain, self.shift))


def get_inputs():
    # Rows differ in offset and scale, so that their statistics cannot be guessed.
    scale = 0.5 + torch.rand(256, 1)
    return [torch.randn(256, 512) * scale + torch.randn(256, 1)]


def get_init_inputs():
    return [512]
