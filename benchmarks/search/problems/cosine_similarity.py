"""Cosine similarity of two sets of rows."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        dot = (x * y).sum(dim=-1)
        return dot / (x.norm(dim=-1) * y.norm(dim=-1)).clamp_min(1e-8)


def get_inputs():
    y = torch.randn(256, 512)
    return [y * torch.rand(256, 1) + torch.randn(256, 512), y]


def get_init_inputs():
    return []
