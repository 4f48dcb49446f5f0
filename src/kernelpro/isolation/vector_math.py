"""Makes the CPU's vector math library choose its kernels before anything depends on them.

MKL picks the kernels of a vector function at that function's first call. torch calls MKL from
several threads at once, and a thread that meets the choice half made computes its share with about
2^-15 of relative error (measured: 5 of 1962 freshly forked processes got an inexact first
``torch.log`` of 4096 elements, none of 1863 after a call on a single element).

Must start no thread: the zygote forks after calling this.
"""

from __future__ import annotations

import torch

FUNCTIONS = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "erfc", "erfinv",
    "exp", "exp2", "expm1", "lgamma", "log", "log10", "log1p", "log2", "rsqrt", "sigmoid", "sin",
    "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
"""Unary functions of torch that vector math libraries have."""


def choose_kernels() -> None:
    """Call every function once per floating type, on one element: a single thread does it."""
    with torch.no_grad():
        for dtype in (torch.float32, torch.float64):
            one = torch.full((1,), 0.5, dtype=dtype)
            for name in FUNCTIONS:
                getattr(torch, name)(one)
            torch.pow(one, one)
            torch.atan2(one, one)
