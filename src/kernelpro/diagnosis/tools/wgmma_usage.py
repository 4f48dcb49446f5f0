"""A Hopper kernel that still uses warp-level matrix instructions (mma.sync)."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import capability, finding, seen
from kernelpro.diagnosis.evidence import number
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

HOPPER = 90
"""Warpgroup MMA exists on sm_90a only; Blackwell has its own instructions."""
GAIN = 1.5
"""High end of what wgmma gains over mma.sync (paper's re-implementation: 1.3-1.5x)."""
MMA_SYNC_CEILING = 62.0
"""Percent of tensor pipe use that mma.sync kernels reach on Hopper (vendor's figures: about 60)."""


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
    high = max(GAIN, min(MMA_SYNC_CEILING * GAIN / max(used, 5.0), 8.0))
    return finding(
        given,
        "wgmma_usage",
        high,
        summary=f"uses mma.sync (HMMA) on Hopper; the tensor pipe is {used:.0f} % busy.",
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
            ("sass.hmma", 0.0), ("sass.gmma", None),
        ),
        gain_source="what mma.sync can reach over what is reached now, times 1.5 (paper)",
        moves=("use_wgmma", "async_copy"),
        confidence=0.85,
        useful=(m.PIPE_TENSOR, "sass.hmma"),
    )  # fmt: skip
