"""Half-precision matrix product that multiplies by broadcast and sum instead of tl.dot."""

import torch
import triton
import triton.language as tl

CASE = {
    "fault": "tensor_core_underutilization",
    "severity": "severe",
    "also": ["shared_memory_tiling"],
    "matmul": True,
}


@triton.jit
def matmul_broadcast(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, n, K):
        inner = k + tl.arange(0, K)
        u = tl.load(a + rows[:, None] * n + inner[None, :]).to(tl.float32)
        v = tl.load(b + inner[:, None] * n + columns[None, :]).to(tl.float32)
        acc += tl.sum(u[:, :, None] * v[None, :, :], axis=1)
    tl.store(c + rows[:, None] * n + columns[None, :], acc.to(tl.float16))


def make():
    n = 1024
    a = torch.randn(n, n, device="cuda", dtype=torch.float16)
    b = torch.randn(n, n, device="cuda", dtype=torch.float16)
    c = torch.empty_like(a)
    return lambda: matmul_broadcast[(n // 32, n // 32)](a, b, c, n, M=32, N=32, K=8)
