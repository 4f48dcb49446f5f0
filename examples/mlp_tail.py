"""The tail of an MLP block: bias, GELU, per-channel scale, residual. Element-wise, no dropout.

Sized for a two-core CPU; the twin in ``gpu/`` is sized for a GPU.
"""

import torch
import torch.nn.functional as F
from torch import nn

ROWS = 2048
FEATURES = 2048


class Model(nn.Module):
    """``residual + scale * gelu(x + bias)``."""

    def __init__(self, features: int):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features) * 0.1)
        self.scale = nn.Parameter(1.0 + 0.2 * torch.randn(features))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """``x``, ``residual``: (rows, features) -> same shape."""
        return residual + self.scale * F.gelu(x + self.bias)


def get_inputs():
    return [torch.randn(ROWS, FEATURES), torch.randn(ROWS, FEATURES)]


def get_init_inputs():
    return [FEATURES]
