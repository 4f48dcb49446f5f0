"""Exponentials, logarithms, roots, sines and conversions that fill the special-function unit."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import finding, seen, stall_share
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

BUSY = 50.0
"""Percent of the XU pipe from which it is a limit (chosen; it issues once in 4 cycles, so other
pipes cannot hide it)."""
MARGIN = 0.9
"""The XU pipe must be about as busy as the busiest other pipe."""
FEWER = 2.0
"""How many of the calls are usually avoidable or replaceable (chosen: half)."""


@tool("special_function_bound", devices=("cuda",), needs=(m.PIPE_XU,))
def special_function_bound(given: ToolInput) -> Finding | None:
    """XU pipe at 50 % or more and the busiest arithmetic pipe."""
    busy = number(given, m.PIPE_XU, 0.0)
    others = max(number(given, name, 0.0) for name in (m.PIPE_FMA, m.PIPE_ALU, m.PIPE_FP64))
    if busy < BUSY or busy < MARGIN * others:
        return None
    calls = value(given, "sass.mufu")
    conversions = value(given, "sass.conversion")
    many = (
        ""
        if calls is None
        else f" ({calls:.0f} MUFU, {conversions or 0:.0f} conversions in the code)"
    )
    share = min(
        max(busy / 100.0, stall_share(given, "short_scoreboard", "mio_throttle") or 0.0), 1.0
    )
    return finding(
        given,
        "special_function_bound",
        gain.amdahl(share, FEWER),
        summary=f"keeps the special-function unit {busy:.0f} % busy{many}; the FMA pipe is at "
        f"{number(given, m.PIPE_FMA, 0.0):.0f} %.",
        cause="The unit does a quarter of the FMA pipe's rate (16 results per cycle and SM): "
        "exp, log, sqrt, sin, reciprocal and int-float conversions all queue there.",
        actions=(
            "Do fewer calls: share results, use identities (sin and cos together, exp of a sum "
            "instead of a product of exps, x * rsqrt(x) for sqrt), hoist reciprocals.",
            "Compute part of them on the FMA pipe by a polynomial (as FlashAttention-4 does for "
            "exp2), or handle two values at once in half precision where the tolerance allows.",
        ),
        evidence=seen(
            given, (m.PIPE_XU, BUSY), (m.PIPE_FMA, None), (m.CONVERSIONS, None),
            ("sass.mufu", None), ("sass.conversion", None),
        ),
        gain_source="Amdahl: XU share of the time, half of the calls saved",
        moves=("approximate_math", "hoist_division", "vector_math"),
        confidence=0.88,
        useful=("sass.mufu", m.PIPE_FMA),
    )  # fmt: skip
