"""Written for kernelpro's tests in the layout of a KernelBench task."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x * 2.0 - 1.0) + torch.tanh(x)


def get_inputs():
    return [torch.rand(512, 2048)]


def get_init_inputs():
    return []
