"""Plain Triton baselines of the mixture-of-experts products, at the tile configuration that the
paper states: 128 x 128 x 32, 8 warps, 3 stages, float32 sums."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK_K = 128, 128, 32
WARPS, STAGES = 8, 3
BAND = 8
"""Row tiles whose column tiles are visited together, so that both operands stay in L2."""


@triton.jit
def _rows_kernel(
    x, weight, out, ends, n, k, weight_step,
    experts: tl.constexpr, padded: tl.constexpr,
    block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(1)
    column_tile = tl.program_id(0)
    index = tl.arange(0, padded)
    end_all = tl.load(ends + index, mask=index < experts, other=0)
    start_all = tl.load(ends + index - 1, mask=(index > 0) & (index < experts), other=0)
    tiles = tl.where(index < experts, (end_all - start_all + block_m - 1) // block_m, 0)
    passed = tl.cumsum(tiles, 0)
    if tile < tl.sum(tiles, 0):
        expert = tl.sum((passed <= tile).to(tl.int32), 0)
        mine = index == expert
        start = tl.sum(tl.where(mine, start_all, 0), 0)
        end = tl.sum(tl.where(mine, end_all, 0), 0)
        first = tl.sum(tl.where(mine, passed - tiles, 0), 0)
        rows = start + (tile - first) * block_m + tl.arange(0, block_m)
        columns = column_tile * block_n + tl.arange(0, block_n)
        inner = tl.arange(0, block_k)
        x_at = x + rows[:, None].to(tl.int64) * k + inner[None, :]
        base = weight + expert.to(tl.int64) * weight_step
        w_at = base + inner[:, None].to(tl.int64) * n + columns[None, :]
        sums = tl.zeros((block_m, block_n), dtype=tl.float32)
        for at in range(0, k, block_k):
            left = k - at
            a = tl.load(x_at, mask=(rows[:, None] < end) & (inner[None, :] < left), other=0.0)
            b = tl.load(w_at, mask=(inner[:, None] < left) & (columns[None, :] < n), other=0.0)
            sums = tl.dot(a, b, sums)
            x_at += block_k
            w_at += block_k * n
        out_at = out + rows[:, None].to(tl.int64) * n + columns[None, :]
        inside = (rows[:, None] < end) & (columns[None, :] < n)
        tl.store(out_at, sums.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _depth_kernel(
    x, gradient, out, ends, m, n,
    block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr, band: tl.constexpr,
):  # fmt: skip
    expert = tl.program_id(1)
    tile = tl.program_id(0)
    tiles_m = tl.cdiv(m, block_m)
    tiles_n = tl.cdiv(n, block_n)
    group = tile // (band * tiles_n)
    height = min(tiles_m - group * band, band)
    inside_band = tile % (band * tiles_n)
    rows = (group * band + inside_band % height) * block_m + tl.arange(0, block_m)
    columns = (inside_band // height) * block_n + tl.arange(0, block_n)
    end = tl.load(ends + expert)
    start = tl.load(ends + expert - 1, mask=expert > 0, other=0)
    inner = tl.arange(0, block_k)
    x_at = x + (start + inner[None, :]).to(tl.int64) * m + rows[:, None]
    g_at = gradient + (start + inner[:, None]).to(tl.int64) * n + columns[None, :]
    sums = tl.zeros((block_m, block_n), dtype=tl.float32)
    for at in range(start, end, block_k):
        left = end - at
        a = tl.load(x_at, mask=(rows[:, None] < m) & (inner[None, :] < left), other=0.0)
        b = tl.load(g_at, mask=(inner[:, None] < left) & (columns[None, :] < n), other=0.0)
        sums = tl.dot(a, b, sums)
        x_at += block_k * m
        g_at += block_k * n
    out_at = out + (expert.to(tl.int64) * m + rows[:, None]) * n + columns[None, :]
    tl.store(
        out_at, sums.to(out.dtype.element_ty), mask=(rows[:, None] < m) & (columns[None, :] < n)
    )


def grouped_rows(x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """(rows, k) x (experts, k, n) -> (rows, n); expert e owns rows ``ends[e-1]`` to ``ends[e]``."""
    rows, k = x.shape
    experts, _, n = weight.shape
    out = torch.empty(rows, n, dtype=x.dtype, device=x.device)
    # The number of row tiles is known on the device only; programs beyond it leave at once.
    grid = (triton.cdiv(n, BLOCK_N), rows // BLOCK_M + experts)
    _rows_kernel[grid](
        x, weight, out, ends, n, k, weight.stride(0), experts, triton.next_power_of_2(experts),
        BLOCK_M, BLOCK_N, BLOCK_K, num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return out


def grouped_depth(x: torch.Tensor, gradient: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """(rows, m), (rows, n) -> (experts, m, n), sums over each expert's rows; zeros for none."""
    m, n, experts = x.shape[1], gradient.shape[1], ends.numel()
    out = torch.empty(experts, m, n, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N), experts)
    _depth_kernel[grid](
        x, gradient, out, ends, m, n, BLOCK_M, BLOCK_N, BLOCK_K, BAND, num_warps=WARPS,
        num_stages=STAGES,
    )  # fmt: skip
    return out
