"""Triton row softmax, one program a row, the row kept in registers."""

import torch
import triton
import triton.language as tl

CASE = {"fault": None, "severity": "clean", "compulsory_bytes": 1073741824}


@triton.jit
def softmax_row(x, y, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + at)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + at, e / tl.sum(e, axis=0))


def make():
    x = torch.randn(32768, 4096, device="cuda")
    y = torch.empty_like(x)
    return lambda: softmax_row[(32768,)](x, y, N=4096, num_warps=8)
