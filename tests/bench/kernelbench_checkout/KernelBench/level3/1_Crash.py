"""Written for kernelpro's tests: takes the whole process with it, as a bad driver would."""

import ctypes

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ctypes.string_at(0)
        return x


def get_inputs():
    return [torch.rand(4)]


def get_init_inputs():
    return []
