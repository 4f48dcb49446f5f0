"""Written for kernelpro's tests: takes the whole process with it, as a bad driver would."""

import os

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os._exit(7)


def get_inputs():
    return [torch.rand(4)]


def get_init_inputs():
    return []
