"""A gated running average along time, as in attention-free sequence models: two scans.

Sized for a GPU.
"""

import torch
from torch import nn

BATCH = 8
LENGTH = 2048
CHANNELS = 1024


class Model(nn.Module):
    """``sigmoid(r) * cumsum(w * v) / (cumsum(w) + eps)`` along time, with ``w = sigmoid(k)``."""

    def __init__(self, eps: float):
        super().__init__()
        self.eps = eps

    def forward(self, r: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """``r``, ``k``, ``v``: (batch, length, channels) -> same shape."""
        w = torch.sigmoid(k)
        total = torch.cumsum(w * v, dim=1)
        weight = torch.cumsum(w, dim=1)
        return torch.sigmoid(r) * total / (weight + self.eps)


def get_inputs():
    shape = (BATCH, LENGTH, CHANNELS)
    # Channels differ in their mean, so that the average does not vanish.
    v = torch.randn(shape) + torch.randn(BATCH, 1, CHANNELS)
    return [torch.randn(shape), torch.randn(shape), v]


def get_init_inputs():
    return [1e-3]
