"""Softmax of scaled attention scores under a boolean mask.

Sized for a two-core CPU; the twin in ``gpu/`` is sized for a GPU.
"""

import torch
from torch import nn

HEADS = 8
QUERIES = 512
KEYS = 512
HEAD_SIZE = 64
KEPT = 0.8
SPREAD = 4.0  # sharp enough that the weights are not all near zero


class Model(nn.Module):
    """``softmax(scores * scale)`` over the last dimension, masked positions excluded."""

    def __init__(self, head_size: int):
        super().__init__()
        self.scale = head_size**-0.5

    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """``scores``: (heads, queries, keys); ``mask``: (queries, keys), True = keep."""
        masked = (scores * self.scale).masked_fill(~mask, float("-inf"))
        return torch.softmax(masked, dim=-1)


def get_inputs():
    mask = torch.rand(QUERIES, KEYS) < KEPT
    mask[:, 0] = True  # a row without any key has no softmax
    return [torch.randn(HEADS, QUERIES, KEYS) * SPREAD * HEAD_SIZE**0.5, mask]


def get_init_inputs():
    return [HEAD_SIZE]
