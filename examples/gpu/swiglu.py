"""The gated half of a feed-forward block: two products in bfloat16, SiLU, product. For a GPU."""

import torch
import torch.nn.functional as F
from torch import nn

PRECISION = "half"
ROWS = 8192
FEATURES = 1024
HIDDEN = 2048


class Model(nn.Module):
    """``silu(x @ gate.T) * (x @ up.T)``."""

    def __init__(self, features: int, hidden: int):
        super().__init__()
        scale = features**-0.5
        self.gate = nn.Parameter((torch.randn(hidden, features) * scale).bfloat16())
        self.up = nn.Parameter((torch.randn(hidden, features) * scale).bfloat16())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x``: (rows, features) in bfloat16 -> (rows, hidden)."""
        return F.silu(F.linear(x, self.gate)) * F.linear(x, self.up)


def get_inputs():
    return [torch.randn(ROWS, FEATURES).bfloat16()]


def get_init_inputs():
    return [FEATURES, HIDDEN]
