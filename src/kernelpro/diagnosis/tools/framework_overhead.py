"""Time of the call that goes to framework operators around the candidate's own code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.evidence import absent, number, observed, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding, Severity
from kernelpro.text import format_us

SHARE = 0.2
"""Framework share worth acting on (the paper's LaunchOverhead threshold, 20 %)."""
FUSED = 3.0
"""How much cheaper the work gets once it is part of a native loop (chosen: one pass instead of a
read, a write and a dispatch per operator)."""


@tool("framework_overhead", devices=("cpu",), needs=("cpu.framework_time_share",), scope="system")
def framework_overhead(given: ToolInput) -> Finding | None:
    """More than 20 % of the call inside framework operators other than matrix products."""
    system = given.profile.system
    operators = [
        operator
        for operator in (() if system is None else system.operators)
        if operator.get("kind", "framework") == "framework"
    ]
    share = number(given, "cpu.framework_time_share", 0.0) * (1.0 - _product_share(operators))
    if share < SHARE:
        return None
    native = value(given, "cpu.native_time_share")
    largest = [o for o in operators if not _is_product(str(o["name"]))][:3]
    listed = ", ".join(f"{o['name']} ({format_us(float(o['self_us']))})" for o in largest)
    all_framework = native is not None and native < 0.05
    return Finding(
        tool="framework_overhead",
        severity=Severity.HIGH if share >= 0.5 else Severity.MEDIUM,
        rank=0,
        summary=f"{share:.0%} of the call is spent in framework operators (products left out)"
        + (f": {listed}." if listed else "."),
        evidence=(observed(given, "cpu.framework_time_share", SHARE),),
        cause="Each framework operator reads its inputs from memory and writes a new tensor; "
        "nothing is fused across it."
        + (" No native code of the candidate was seen at all." if all_framework else ""),
        actions=(
            (f"Move {largest[0]['name']} into" if largest else "Move these operators into")
            + " the native kernel: apply it while the value is still in a register.",
            "Write results into one preallocated output instead of chaining temporaries.",
        ),
        expected_gain=gain.interval(gain.amdahl(share, FUSED), given.stage1.headroom),
        missing=absent(given, ("cpu.native_time_share", "cpu.framework_calls")),
        confidence=0.8,
        moves=("fuse_elementwise", "fuse_epilogue", "avoid_temporaries"),
        gain_source="Amdahl: framework share without matrix products, made 3x cheaper",
    )


def _product_share(operators: Sequence[dict[str, Any]]) -> float:
    """Share of matrix products in the framework's time: the library does those well."""
    total = sum(float(o["self_us"]) for o in operators)
    products = sum(float(o["self_us"]) for o in operators if _is_product(str(o["name"])))
    return products / total if total > 0 else 0.0


def _is_product(name: str) -> bool:
    return any(stem in name for stem in ("mm", "matmul", "linear", "conv", "mkldnn"))
