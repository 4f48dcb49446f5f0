"""A Hopper kernel that still uses warp-level matrix instructions (mma.sync)."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import WARP, capability, finding, seen
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.measured import DRAM_ATTAINABLE, PIPE_ATTAINABLE, active_share
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

HOPPER = 90
"""Warpgroup MMA exists on sm_90a only; Blackwell has its own instructions."""
GAIN = 1.5
"""High end of what wgmma gains over mma.sync (paper's re-implementation: 1.3-1.5x)."""
MMA_SYNC_CEILING = 62.0
"""Percent of tensor pipe use that mma.sync kernels reach on Hopper (vendor's figures: about 60)."""

NOTICED = 1.1
"""Factor by which work beside the products must lower the expected gain to be mentioned (chosen).
"""


@tool(
    "wgmma_usage",
    devices=("cuda",),
    needs=(f"{m.TENSOR_HMMA}|{m.PIPE_TENSOR}|sass.hmma",),
)
def wgmma_usage(given: ToolInput) -> Finding | None:
    """Matrix instructions of the old kind and none of the new, on compute capability 9.0."""
    if capability(given) != HOPPER:
        return None
    old = number(given, m.TENSOR_HMMA, 0.0) + number(given, "sass.hmma", 0.0)
    new = number(given, m.TENSOR_GMMA, 0.0) + number(given, "sass.gmma", 0.0)
    if old <= 0 or new > 0:
        return None
    used = number(given, m.PIPE_TENSOR, 30.0)
    faster = max(GAIN, min(MMA_SYNC_CEILING * GAIN / max(used, 5.0), 8.0))
    (busy, unit), arithmetic = beside_products(given), arithmetic_share(given)
    bound, mixed = 1.0 / max(busy, 0.01), gain.amdahl(1.0 - arithmetic, faster)
    high, beside = min(mixed, bound), ""
    if high < faster / NOTICED:
        beside = f"; beside the products, {unit} is {busy:.0%} busy" if bound < mixed \
            else f"; {arithmetic:.0%} of its instructions are other arithmetic"  # fmt: skip
    return finding(
        given,
        "wgmma_usage",
        high,
        summary=f"uses mma.sync (HMMA) on Hopper; the tensor pipe is {used:.0f} % busy{beside}.",
        cause="Warp-level matrix instructions read operands through registers and cannot feed "
        "Hopper's tensor cores at full rate; warpgroup instructions read shared memory directly "
        "and run asynchronously.",
        actions=(
            "Rewrite the main loop with warpgroup MMA (CuTe SM90_64x..._SS atoms, or Triton with "
            "num_warps=4 or 8), build for sm_90a.",
            "Feed it by TMA or cp.async with 3-4 stages, so that loads overlap the products.",
        ),
        evidence=seen(
            given, (m.TENSOR_HMMA, 0.0), (m.TENSOR_GMMA, None), (m.PIPE_TENSOR, MMA_SYNC_CEILING),
            ("sass.hmma", 0.0), ("sass.gmma", None), (m.PIPE_XU, None), (m.PIPE_FMA, None),
            (m.PIPE_ALU, None),
        ),
        gain_source="Amdahl: all but the arithmetic beside the products, faster by what mma.sync "
        "can reach over what is reached now, times 1.5 (paper); at most until another unit is "
        "the limit",
        moves=("use_wgmma", "async_copy"),
        confidence=0.85,
        useful=(m.PIPE_TENSOR, "sass.hmma"),
    )  # fmt: skip


def beside_products(given: ToolInput) -> tuple[float, str]:
    """Share of the time that the busiest unit takes whatever multiplies, and which it is: the
    arithmetic of a softmax or an epilogue stays, and so do the bytes. 0 if nothing was measured."""
    active = active_share(given) * 100.0 / PIPE_ATTAINABLE
    return max(
        (number(given, name, 0.0) / 100.0 * factor, shown)
        for name, factor, shown in (
            (m.PIPE_XU, active, "the special-function unit"),
            (m.PIPE_FMA, active, "the FMA pipe"),
            (m.PIPE_ALU, active, "the ALU pipe"),
            (m.DRAM_PCT, 100.0 / DRAM_ATTAINABLE, "DRAM"),
        )
    )


def arithmetic_share(given: ToolInput) -> float:
    """Share of the executed instructions that is floating-point arithmetic beside the products:
    0 in a plain product, most in attention, where a softmax stands between two. 0 if not counted.
    """
    executed = value(given, m.INSTRUCTIONS)
    counted = (m.FFMA, m.FADD, m.FMUL, m.HFMA, m.CONVERSIONS)
    threads = sum(number(given, name, 0.0) for name in counted)
    return min(threads / WARP / executed, 1.0) if executed else 0.0
