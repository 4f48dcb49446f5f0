"""Triton row softmax over 24 long rows: 24 programs on a GPU with many more multiprocessors."""

import torch
import triton
import triton.language as tl

CASE = {"fault": "launch_configuration", "severity": "severe", "also": ["occupancy_limiter"]}


@triton.jit
def softmax_rows(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = tl.full((BLOCK,), -1e30, tl.float32)
    s = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, n, BLOCK):
        v = tl.load(x + row * n + k + tl.arange(0, BLOCK))
        u = tl.maximum(m, v)
        s = s * tl.exp(m - u) + tl.exp(v - u)
        m = u
    top = tl.max(m, axis=0)
    total = tl.sum(s * tl.exp(m - top), axis=0)
    for k in range(0, n, BLOCK):
        at = row * n + k + tl.arange(0, BLOCK)
        tl.store(y + at, tl.exp(tl.load(x + at) - top) / total)


def make():
    x = torch.randn(24, 1 << 20, device="cuda")
    y = torch.empty_like(x)
    return lambda: softmax_rows[(24,)](x, y, 1 << 20, BLOCK=2048)
