"""A matrix product on the CPU far below the FMA peak: operands come from too far away."""

from __future__ import annotations

from kernelpro.diagnosis import gain
from kernelpro.diagnosis.analytic import is_matmul
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.evidence import absent, number, observed, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding, Severity
from kernelpro.text import format_si

GOOD = 0.6
"""Share of the FMA peak from which a matrix product counts as blocked well (chosen; vendor
libraries reach 0.7-0.9)."""
REACHABLE = 0.8
"""Share that a blocked and packed product reaches; the gain is computed against it (chosen)."""
OWN = 0.5
"""Least share of the call in own native code: a library's product cannot be blocked here."""
MATMUL_SHARE = 0.5
"""Matrix products must do at least half of the graph's FLOPs."""


@tool("cpu_cache_blocking", devices=("cpu",), needs=("cpu.achieved_flops", "cpu.flops_share"))
def cpu_cache_blocking(given: ToolInput) -> Finding | None:
    """Compute-bound problem with a matrix product below 60 % of the FMA peak."""
    graph = given.graph
    if graph is None or not graph.has_matmul or given.stage1.analytic == "memory":
        return None
    products = [n for n in graph.nodes if is_matmul(n.op)]
    if sum(n.flops for n in products) < MATMUL_SHARE * graph.flops:
        return None
    share = number(given, "cpu.flops_share", 1.0)
    if number(given, "cpu.native_time_share", 1.0) < OWN:
        return None
    if share >= GOOD:
        return None
    largest = max(products, key=lambda n: n.flops)
    shape = "x".join(str(s) for s in largest.outputs[0].shape) if largest.outputs else "?"
    l2 = given.device.l2_bytes if given.device is not None else None
    fits = "L2" if l2 is None else f"L2 ({format_si(l2, 'B')})"
    loads = value(given, "cpu.loop_loads")
    return Finding(
        tool="cpu_cache_blocking",
        severity=Severity.HIGH if share < GOOD / 2 else Severity.MEDIUM,
        rank=0,
        summary=f"{given.kernel.name}: {largest.op} with output {shape} runs at {share:.0%} of the "
        "FMA peak.",
        evidence=(
            observed(given, "cpu.flops_share", GOOD),
            observed(given, "cpu.achieved_flops"),
        ),
        cause="Each operand is loaded again for nearly every multiply-add instead of being "
        "reused from registers and cache"
        + ("." if loads is None else f" ({loads:.0f} loads per iteration of the hot loop)."),
        actions=(
            f"Block the loops: a register tile of about 6 x {_lanes(given) * 2} outputs, panels of "
            f"the operands sized for {fits}.",
            "Copy each panel into contiguous memory first, in the order the inner loop reads it.",
            "Keep the whole reduction of a register tile in accumulators; store once.",
        ),
        expected_gain=gain.interval(REACHABLE / max(share, 0.005), given.stage1.headroom),
        missing=absent(given, ("cpu.loop_loads",)),
        confidence=0.75,
        moves=("block_for_cache", "pack_operands", "library_matmul", "more_accumulators"),
        gain_source="0.8 of the FMA peak over the share reached now, capped by the headroom",
    )


def _lanes(given: ToolInput) -> int:
    bits = given.device.simd_bits if given.device is not None else None
    return (bits or 256) // 32
