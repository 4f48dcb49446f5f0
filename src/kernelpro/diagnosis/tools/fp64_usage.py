"""Double-precision arithmetic in a kernel whose data is single precision."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import capability, finding, seen
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

SHARE = 0.05
"""Double over all floating-point operations from which it matters (chosen)."""
PIPE = 15.0
"""Percent of the FP64 pipe from which it matters (chosen)."""
FULL_RATE = (70, 80, 90, 100)
"""Data-centre chips run FP64 at half the FP32 rate; the others at 1/32 to 1/64."""


@tool("fp64_usage", devices=("cuda",), needs=(f"{m.PIPE_FP64}|{m.DFMA}|sass.fp64",))
def fp64_usage(given: ToolInput) -> Finding | None:
    """Double operations, unless the problem itself is in double precision."""
    if given.graph is not None and _is_double(given):
        return None
    share, pipe = double_share(given), number(given, m.PIPE_FP64, 0.0)
    if (share or 0.0) < SHARE and pipe < PIPE:
        return None
    generation = capability(given)
    fast = generation is None or generation in FULL_RATE
    factor = 3.0 if fast else 32.0
    time = min(max(pipe / 100.0, (share or 0.0) * 0.6), 0.95)
    many = f"{share:.0%} of the floating-point operations" if share is not None else "its FP64 work"
    return finding(
        given,
        "fp64_usage",
        gain.amdahl(time, factor),
        summary=f"does {many} in double precision (FP64 pipe {pipe:.0f} % busy).",
        cause="A double literal (0.5 instead of 0.5f), a double math function or a double "
        "accumulator turns the whole expression into double precision, with conversions around "
        "it and software routines for functions.",
        actions=(
            "Write float literals with f and use the float functions (tanhf, expf, sqrtf); build "
            "once with -Xptxas -v or look for DFMA, DADD, DMUL in the SASS to find the rest.",
            "If the double accumulator is there for accuracy, use several float partial sums or "
            "Kahan summation instead.",
        ),
        evidence=seen(
            given, (m.PIPE_FP64, PIPE), (m.DFMA, None), (m.DADD, None), (m.DMUL, None),
            (m.FFMA, None), ("sass.fp64", 0.0),
        ),
        gain_source="Amdahl: FP64 share of the time, 3x cheaper in float on data-centre chips, "
        "32x on others",
        moves=("avoid_fp64",),
        confidence=0.9,
        useful=(m.PIPE_FP64, m.DFMA),
        example="y = 0.5f * x * (1.0f + tanhf(0.7978846f * (x + 0.044715f * x * x * x)));",
    )  # fmt: skip


def double_share(given: ToolInput) -> float | None:
    """Double over all executed floating-point operations, else over those in the code."""
    double = [value(given, name) for name in (m.DFMA, m.DADD, m.DMUL)]
    single = [value(given, name) for name in (m.FFMA, m.FADD, m.FMUL)]
    if any(part is not None for part in double):
        wide = sum(part or 0.0 for part in double)
        total = wide + sum(part or 0.0 for part in single) + number(given, m.HFMA, 0.0)
        return wide / total if total > 0 else 0.0
    in_code = value(given, "sass.fp64")
    if in_code is None:
        return None
    other = sum(number(given, f"sass.{kind}", 0.0) for kind in ("ffma", "fadd", "fmul", "hfma"))
    return in_code / (in_code + other) if in_code + other > 0 else 0.0


def _is_double(given: ToolInput) -> bool:
    assert given.graph is not None
    return any(
        spec.dtype in ("float64", "complex128")
        for node in given.graph.nodes
        for spec in node.outputs
    )
