"""Group norm followed by SiLU, as in the residual blocks of diffusion models. Sized for a GPU."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH = 32
CHANNELS = 256
SIDE = 64
GROUPS = 32


class Model(nn.Module):
    """``silu(group_norm(x))``."""

    def __init__(self, groups: int, channels: int):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        nn.init.normal_(self.norm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x``: (batch, channels, height, width) -> same shape."""
        return F.silu(self.norm(x))


def get_inputs():
    # Channels differ in offset and scale, so that their statistics cannot be guessed.
    scale = 0.5 + torch.rand(BATCH, CHANNELS, 1, 1)
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE) * scale + torch.randn(BATCH, CHANNELS, 1, 1)]


def get_init_inputs():
    return [GROUPS, CHANNELS]
