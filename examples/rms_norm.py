"""RMS norm over the feature dimension, with a learned gain.

Sized for a two-core CPU; the twin in ``gpu/`` is sized for a GPU.
"""

import torch
from torch import nn

ROWS = 2048
FEATURES = 2048


class Model(nn.Module):
    """Scale each row to a root mean square of one, then by ``weight``."""

    def __init__(self, features: int, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.2 * torch.randn(features))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x``: (rows, features) -> same shape."""
        mean_square = x.pow(2).mean(dim=-1, keepdim=True)
        return x * torch.rsqrt(mean_square + self.eps) * self.weight


def get_inputs():
    # Rows differ in offset and scale, so that their statistics cannot be guessed.
    scale = 0.5 + torch.rand(ROWS, 1)
    return [torch.randn(ROWS, FEATURES) * scale + torch.randn(ROWS, 1)]


def get_init_inputs():
    return [FEATURES]
