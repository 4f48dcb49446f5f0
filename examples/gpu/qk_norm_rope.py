"""RMS norm of queries and keys per head, then rotary position embedding. Sized for a GPU.

What recent language models do between the projections and attention. Queries share key heads.
"""

import torch
from torch import nn

BATCH = 8
LENGTH = 2048
QUERY_HEADS = 32
KEY_HEADS = 8
HEAD_SIZE = 128


class Model(nn.Module):
    """Normalise each head in float32, scale by a gain, rotate by its position's angles."""

    def __init__(self, head_size: int, eps: float = 1e-6):
        super().__init__()
        self.query_gain = nn.Parameter(1.0 + 0.2 * torch.randn(head_size))
        self.key_gain = nn.Parameter(1.0 + 0.2 * torch.randn(head_size))
        self.eps = eps

    def turned(
        self, x: torch.Tensor, gain: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> torch.Tensor:
        """``x``: (batch, length, heads, head_size) -> same shape and type."""
        wide = x.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps) * gain
        first, second = normed.chunk(2, dim=-1)
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        return turned.to(x.dtype)

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, angles: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """``query``, ``key``: (batch, length, heads, head_size) in bfloat16; ``angles``: (length,
        head_size / 2) in float32 -> both turned."""
        cos, sin = angles.cos()[:, None, :], angles.sin()[:, None, :]
        return (
            self.turned(query, self.query_gain, cos, sin),
            self.turned(key, self.key_gain, cos, sin),
        )


def get_inputs():
    frequencies = 10000.0 ** -(torch.arange(0, HEAD_SIZE, 2) / HEAD_SIZE)
    angles = torch.arange(LENGTH)[:, None] * frequencies
    # Heads differ in scale, so that the norm matters.
    query = torch.randn(BATCH, LENGTH, QUERY_HEADS, HEAD_SIZE) * (
        0.5 + torch.rand(BATCH, LENGTH, QUERY_HEADS, 1)
    )
    key = torch.randn(BATCH, LENGTH, KEY_HEADS, HEAD_SIZE) * (
        0.5 + torch.rand(BATCH, LENGTH, KEY_HEADS, 1)
    )
    return [query.bfloat16(), key.bfloat16(), angles]


def get_init_inputs():
    return [HEAD_SIZE]
