"""Written for kernelpro's tests: a degenerate task, whose answer is zero whatever the input."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x - 2.0)


def get_inputs():
    return [torch.rand(512, 1024)]


def get_init_inputs():
    return []
