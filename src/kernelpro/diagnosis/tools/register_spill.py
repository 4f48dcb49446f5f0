"""Values that the compiler could not keep in registers and parks in local memory."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import MEMORY_STALLS, finding, registers, seen, stall_share
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.tool import tool
from kernelpro.diagnosis.waste import local_share
from kernelpro.schema.finding import Finding

SECTOR_SHARE = 0.05
"""Local share of local plus global L1 sectors from which spills cost (the paper's condition B
uses 0.3 at high memory load; chosen lower because the expected gain decides the severity)."""
INSTRUCTION_SHARE = 0.02
"""Local accesses over all instructions from which they cost (chosen)."""
LIKELY = 128.0
"""Registers from which local traffic without further evidence is a spill (paper, tier)."""


@tool("register_spill", devices=("cuda",), needs=(f"{m.LOCAL_LOADS}|{m.SPILL_REQUESTS}|sass.ldl",))
def register_spill(given: ToolInput) -> Finding | None:
    """Local traffic that is known or likely to be spills, and large enough to matter."""
    cost = local_cost(given)
    if cost is None or not is_spill(given):
        return None
    used = registers(given)
    resources = given.kernel.resources
    spilled = None if resources is None else resources.spill_store_bytes
    amount = f"{spilled} bytes per thread; " if spilled else ""
    limit = f" at {used:.0f} registers" if used else ""
    return finding(
        given,
        "register_spill",
        gain.amdahl(cost[2]),
        summary=f"spills registers to local memory{limit}: {amount}{local_amount(cost)}.",
        cause="More values are live at once than the register limit allows, so the compiler stores "
        "and reloads them; the traffic goes through L1 and, if it misses, through DRAM.",
        actions=(
            "Raise the limit: drop -maxrregcount, or ask for fewer blocks in __launch_bounds__"
            + (f" (now {used:.0f} registers per thread)." if used else "."),
            "Shorten live ranges: smaller tile per thread, less unrolling, recompute cheap values, "
            "move long-lived ones to shared memory.",
        ),
        evidence=seen(
            given, (m.LOCAL_LOADS, None), (m.LOCAL_STORES, None), (m.SPILL_REQUESTS, None),
            (m.LOCAL_LOAD_SECTORS, None), (m.REGISTERS, LIKELY), ("sass.local_stack", 0.0),
        ),
        gain_source="Amdahl: share of local accesses in the time, removed",
        moves=("reduce_registers", "launch_bounds", "smaller_tile", "unroll_less"),
        confidence=0.92 if sure(given) else 0.65,
        useful=(m.SPILL_REQUESTS, "sass.local_stack", m.LOCAL_LOAD_SECTORS),
    )  # fmt: skip


def local_cost(given: ToolInput) -> tuple[float, float, float] | None:
    """(local share of L1 sectors, of instructions, estimated share of the time); None if none.

    The time share is the larger of the two shares, the sector one weighed by how much the kernel
    waits for memory, and of what NVIDIA's rule estimates where a report holds only that.
    """
    accesses = number(given, m.LOCAL_LOADS, 0.0) + number(given, m.LOCAL_STORES, 0.0)
    total = value(given, m.INSTRUCTIONS)
    instructions = accesses / total if total else 0.0
    if accesses == 0.0:
        static = number(given, "sass.ldl", 0.0) + number(given, "sass.stl", 0.0)
        size = value(given, "sass.total")
        instructions = static / size if size else 0.0
    sectors = local_share(given) or 0.0
    estimate = number(given, m.LOCAL_RULE_PCT, 0.0) / 100.0
    if max(sectors, estimate) < SECTOR_SHARE and instructions < INSTRUCTION_SHARE:
        return None
    waits = max(
        stall_share(given, *MEMORY_STALLS) or 0.0, number(given, m.MEMORY_PCT, 0.0) / 100.0,
        number(given, m.L1_PCT, 0.0) / 100.0,
    )  # fmt: skip
    return sectors, instructions, min(max(sectors * waits, instructions, estimate), 0.9)


def local_amount(cost: tuple[float, float, float]) -> str:
    """How much of the kernel is local accesses, in words."""
    sectors, instructions, share = cost
    if sectors == instructions == 0.0:
        return f"about {share:.0%} of the time by NVIDIA's estimate"
    return (
        f"{sectors:.0%} of the L1 sectors and {instructions:.0%} of the instructions are local "
        "accesses"
    )


def is_spill(given: ToolInput) -> bool:
    """True if the local traffic comes from spilling rather than from arrays with run-time indices.

    In order of weight: the compiler's report, the profiler's spill counter, the addresses in the
    machine code, and last the number of registers.
    """
    resources = given.kernel.resources
    if resources is not None and resources.spill_store_bytes is not None:
        return resources.spill_store_bytes > 0
    requests = value(given, m.SPILL_REQUESTS)
    if requests is not None:
        return requests > 0
    indexed = value(given, "sass.local_indexed")
    if indexed is not None:
        return indexed == 0 and number(given, "sass.local_stack", 0.0) > 0
    return (registers(given) or 0.0) >= LIKELY


def sure(given: ToolInput) -> bool:
    """True if something better than the number of registers tells spills from arrays."""
    resources = given.kernel.resources
    reported = resources is not None and resources.spill_store_bytes is not None
    counted = value(given, m.SPILL_REQUESTS) is not None
    return reported or counted or value(given, "sass.local_indexed") is not None
