"""A matrix product that runs on the scalar pipes although the GPU has tensor cores."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import capability, finding, matmul_like, seen
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding
from kernelpro.schema.hardware import Peaks

IDLE = 10.0
"""Percent of tensor pipe use below which the tensor cores are idle (paper, tier critical)."""
FIRST = 70
"""Compute capability of the first tensor cores (Volta)."""
RATIO = 8.0
"""Tensor over scalar rate where no peaks are known (H200, TF32 dense over float32: 7; half: 15)."""
REACHED = 0.5
"""Share of the tensor peak that a first rewrite reaches (chosen)."""


@tool("tensor_core_underutilization", devices=("cuda",), needs=(m.PIPE_TENSOR,))
def tensor_core_underutilization(given: ToolInput) -> Finding | None:
    """Gate: the kernel multiplies matrices. Trigger: tensor pipe below 10 %."""
    used = number(given, m.PIPE_TENSOR, 100.0)
    generation = capability(given)
    if used >= IDLE or (generation is not None and generation < FIRST):
        return None
    if number(given, "sass.gmma", 0.0) + number(given, "sass.hmma", 0.0) > 0:
        return None
    if not matmul_like(given):
        return None
    ratio, kind = tensor_ratio(given.peaks)
    fma = number(given, m.PIPE_FMA, 50.0) / 100.0
    high = max(gain.amdahl(max(fma, 0.6), ratio * REACHED), 1.0)
    half = number(given, m.HFMA, 0.0) > 0 or number(given, "sass.ldg.16", 0.0) > 0
    return finding(
        given,
        "tensor_core_underutilization",
        high,
        summary=f"multiplies matrices on the scalar pipe (FMA {fma:.0%}, tensor {used:.0f} %); "
        f"the tensor cores are about {ratio:.0f}x as fast.",
        cause="The inner product is written with scalar multiply-adds, which never use the tensor "
        "cores." + (" The operands are already half precision." if half else ""),
        actions=(
            "Use matrix instructions: Hopper's wgmma through CuTe, or mma.sync/WMMA, or tl.dot in "
            "Triton, with operands tiled in shared memory.",
            "If strict float32 is required, check whether TF32 or a split into three TF32 "
            "products (3xTF32) meets the tolerance; otherwise keep the scalar pipe and tile for "
            "registers.",
        ),
        evidence=seen(
            given, (m.PIPE_TENSOR, IDLE), (m.PIPE_FMA, None), (m.FFMA, None),
            ("sass.hot.ffma", None), ("sass.hot.hfma", None),
        ),
        gain_source=f"Amdahl: multiply-add share on the tensor cores at half of their {kind} peak",
        moves=("use_tensor_cores", "library_matmul"),
        confidence=0.8 if given.graph is not None or value(given, "sass.total") else 0.6,
        useful=(m.PIPE_FMA, "sass.hot.ffma"),
    )  # fmt: skip


def tensor_ratio(peaks: Peaks | None) -> tuple[float, str]:
    """(tensor over scalar dense peak, which one): half where measured, else TF32, else nominal."""
    if peaks is not None and peaks.flops.get("float32"):
        for kind in ("tf32", "float16", "bfloat16"):
            if peaks.flops.get(kind):
                return max(peaks.flops[kind] / peaks.flops["float32"], 1.0), kind
    return RATIO, "nominal"
