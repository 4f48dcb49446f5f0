"""Written for kernelpro's tests in the layout of a KernelBench task."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features_in: int, features_out: int, factor: float):
        super().__init__()
        self.linear = nn.Linear(features_in, features_out)
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(self.linear(x)) * self.factor


def get_inputs():
    return [torch.rand(256, 128)]


def get_init_inputs():
    return [128, 512, 0.5]
