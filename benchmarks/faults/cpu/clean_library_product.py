"""A matrix product left to the library."""

import torch

CASE = {"fault": None, "severity": "clean", "also": []}
SOURCE = r"""
extern "C" void nothing(float* x, long n) { if (n > 0) x[0] = x[0]; }
"""


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(2048, 2048), torch.randn(2048, 2048)]


def get_init_inputs():
    return []


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from kernelpro import inline

        self.native = inline.cpp(SOURCE)

    def forward(self, a, b):
        c = a @ b
        self.native.nothing(c, 1)
        return c
