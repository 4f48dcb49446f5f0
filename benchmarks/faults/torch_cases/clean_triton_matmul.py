"""Triton half-precision matrix product, 128 x 256 x 64 tiles (warpgroup MMA on Hopper)."""

import torch
import triton
import triton.language as tl

CASE = {"fault": None, "severity": "clean", "matmul": True}


@triton.jit
def matmul(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    tiles_n = n // N
    group = pid // (GROUP * tiles_n)
    row_tile = group * GROUP + (pid % GROUP)
    col_tile = (pid % (GROUP * tiles_n)) // GROUP
    rows = row_tile * M + tl.arange(0, M)
    columns = col_tile * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    pa = a + rows[:, None] * n + inner[None, :]
    pb = b + inner[:, None] * n + columns[None, :]
    acc = tl.zeros((M, N), dtype=tl.float32)
    for _ in range(0, n, K):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += K
        pb += K * n
    tl.store(c + rows[:, None] * n + columns[None, :], acc.to(tl.float16))


def make():
    n = 8192
    a = torch.randn(n, n, device="cuda", dtype=torch.float16)
    b = torch.randn(n, n, device="cuda", dtype=torch.float16)
    c = torch.empty_like(a)
    grid = (n // 128 * (n // 256),)
    return lambda: matmul[grid](a, b, c, n, M=128, N=256, K=64, GROUP=8, num_warps=8, num_stages=4)
