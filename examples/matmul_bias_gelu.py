"""A linear layer with GELU: matrix product, bias, activation.

Sized for a two-core CPU; the twin in ``gpu/`` is sized for a GPU.
"""

import torch
import torch.nn.functional as F
from torch import nn

ROWS = 2048
INPUTS = 256
OUTPUTS = 1024


class Model(nn.Module):
    """``gelu(x @ weight.T + bias)``."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x``: (rows, inputs) -> (rows, outputs)."""
        return F.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(ROWS, INPUTS)]


def get_init_inputs():
    return [INPUTS, OUTPUTS]
