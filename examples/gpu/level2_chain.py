"""A chain in the manner of KernelBench level 2: linear, scale, clamp, log-sum-exp, Mish.

Sized for a GPU; the twin one folder up is sized for a two-core CPU.
"""

import torch
import torch.nn.functional as F
from torch import nn

PRECISION = "tf32"
ROWS = 8192
INPUTS = 512
OUTPUTS = 4096


class Model(nn.Module):
    """Mish of each row's activations, weighted by their distance to the row's log-sum-exp."""

    def __init__(self, inputs: int, outputs: int, scale: float, bound: float):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale = scale
        self.bound = bound

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x``: (rows, inputs) -> (rows, outputs)."""
        y = torch.clamp(self.linear(x) * self.scale, -self.bound, self.bound)
        level = torch.logsumexp(y, dim=1, keepdim=True)
        return F.mish(y) * (level - y)


def get_inputs():
    # Rows differ in scale, so that their log-sum-exp cannot be guessed.
    return [torch.randn(ROWS, INPUTS) * (0.25 + 2.0 * torch.rand(ROWS, 1))]


def get_init_inputs():
    return [INPUTS, OUTPUTS, 1.5, 2.0]
