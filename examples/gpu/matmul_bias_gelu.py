"""A linear layer with GELU: matrix product, bias, activation.

Sized for a GPU; the twin one folder up is sized for a two-core CPU.
"""

import torch
import torch.nn.functional as F
from torch import nn

PRECISION = "tf32"
ROWS = 8192
INPUTS = 1024
OUTPUTS = 4096


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
