"""A batched product over a short dimension and the softmax of its rows: attention weights as such.

Sized for a GPU: the result, (heads, queries, keys) in float16, is what moves.
"""

import torch
from torch import nn

PRECISION = "half"
HEADS = 64
QUERIES = 1024
KEYS = 1024
HEAD_SIZE = 64


class Model(nn.Module):
    """``softmax(query @ key.T * scale + bias)``, the bias per head and key."""

    def __init__(self, head_size: int):
        super().__init__()
        self.scale = head_size**-0.5

    def forward(self, query: torch.Tensor, key: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """``query``, ``key``: (heads, length, head_size); ``bias``: (heads, keys), all float16 ->
        (heads, queries, keys)."""
        scores = torch.matmul(query, key.transpose(-1, -2)) * self.scale + bias[:, None, :]
        return torch.softmax(scores, dim=-1)


def get_inputs():
    query = torch.randn(HEADS, QUERIES, HEAD_SIZE) * 1.5
    key = torch.randn(HEADS, KEYS, HEAD_SIZE)
    return [query.half(), key.half(), torch.randn(HEADS, KEYS).half()]


def get_init_inputs():
    return [HEAD_SIZE]
