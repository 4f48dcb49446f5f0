"""Causal attention with soft-capped scores and grouped queries, float16, written out. For a GPU."""

import torch
from torch import nn

PRECISION = "half"
BATCH = 4
LENGTH = 1024
HEADS = 16
KEY_HEADS = 4
HEAD_SIZE = 64


class Model(nn.Module):
    """Scores pass ``cap * tanh(score / cap)`` before the causal mask and the softmax."""

    def __init__(self, head_size: int, cap: float):
        super().__init__()
        self.scale = head_size**-0.5
        self.cap = cap

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """``query``: (batch, heads, length, head_size); ``key``, ``value``: the same with fewer
        heads; float16 -> shape of ``query``."""
        groups = query.shape[1] // key.shape[1]
        key = key.repeat_interleave(groups, dim=1)
        value = value.repeat_interleave(groups, dim=1)
        scores = torch.matmul(query, key.transpose(-1, -2)) * self.scale
        scores = self.cap * torch.tanh(scores / self.cap)
        length = query.shape[2]
        future = torch.ones(length, length, dtype=torch.bool, device=query.device).triu(1)
        weights = torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
        return torch.matmul(weights, value)


def get_inputs():
    query = torch.randn(BATCH, HEADS, LENGTH, HEAD_SIZE) * 2.0
    key = torch.randn(BATCH, KEY_HEADS, LENGTH, HEAD_SIZE)
    value = torch.randn(BATCH, KEY_HEADS, LENGTH, HEAD_SIZE)
    return [query.half(), key.half(), value.half()]


def get_init_inputs():
    return [HEAD_SIZE, 20.0]
