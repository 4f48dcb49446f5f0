"""Triton kernel that scales a matrix through its transposed view: lanes step over whole rows."""

import torch
import triton
import triton.language as tl

CASE = {"fault": "uncoalesced_access", "severity": "severe", "also": ["memory_coalescing"]}


@triton.jit
def scale_transposed(x, y, n, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = row * n + column
    tl.store(y + at, tl.load(x + at) * 2.0)


def make():
    n = 8192
    x = torch.randn(n, n, device="cuda")
    y = torch.empty_like(x)
    return lambda: scale_transposed[(n, n // 1024)](x, y, n, BLOCK=1024)
