"""Residual addition followed by layer norm, as in a post-norm transformer block.

Sized for a two-core CPU; the twin in ``gpu/`` is sized for a GPU.
"""

import torch
from torch import nn

ROWS = 2048
FEATURES = 2048


class Model(nn.Module):
    """``layer_norm(x + residual)``; returns the norm and the sum, as the next block needs both."""

    def __init__(self, features: int):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        nn.init.normal_(self.norm.bias, std=0.2)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """``x``, ``residual``: (rows, features) -> two tensors of that shape."""
        total = x + residual
        return self.norm(total), total


def get_inputs():
    # Rows differ in offset and scale, so that their statistics cannot be guessed.
    scale = 0.5 + torch.rand(ROWS, 1)
    x = torch.randn(ROWS, FEATURES) * scale + torch.randn(ROWS, 1)
    return [x, torch.randn(ROWS, FEATURES)]


def get_init_inputs():
    return [FEATURES]
