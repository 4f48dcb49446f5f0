"""Written for kernelpro's tests: a task that does not fit together."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ x


def get_inputs():
    return [torch.rand(4, 5)]


def get_init_inputs():
    return []
