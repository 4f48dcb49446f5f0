"""So many registers per thread that too few warps fit to hide latency."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import (
    finding,
    issue_share,
    limits,
    memory_saturated,
    registers,
    seen,
    stall_share,
    threads_per_block,
)
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

HIGH = 96.0
"""Registers per thread (paper)."""
OCCUPANCY = 50.0
"""Percent of theoretical occupancy under which the registers matter (paper's occupancy limit)."""
BUSY = 0.7
"""Share of issuing cycles from which few warps are enough (chosen)."""
TENSOR = 30.0
"""Percent of tensor pipe use from which many registers are the design, not a fault (chosen)."""
FILE = 65536.0
"""Registers of a multiprocessor, sm_70 to sm_120 (CUDA programming guide)."""


@tool("high_register_usage", devices=("cuda",), needs=(f"{m.REGISTERS}|{m.LIMIT_REGISTERS}",))
def high_register_usage(given: ToolInput) -> Finding | None:
    """Above 96 registers, they limit the occupancy, schedulers starve, and memory is not full."""
    used = registers(given)
    if used is None or used <= HIGH or number(given, m.PIPE_TENSOR, 0.0) >= TENSOR:
        return None
    occupancy = value(given, m.THEORETICAL_OCCUPANCY)
    if occupancy is None:
        threads = threads_per_block(given) or 128.0
        occupancy = 100.0 * (FILE / used // threads) * threads / 2048.0
    issuing = issue_share(given)
    if occupancy >= OCCUPANCY or (issuing is not None and issuing >= BUSY):
        return None
    if memory_saturated(given):
        return None
    tight = limits(given)
    if tight and tight.get("registers", 0.0) > min(tight.values()):
        return None
    waiting = stall_share(given, "long_scoreboard", "short_scoreboard", "wait", "lg_throttle")
    share = 0.6 if waiting is None else waiting
    return finding(
        given,
        "high_register_usage",
        min(gain.amdahl(share, 2.0), 1.0 / max(issuing or 0.5, 0.05)),
        summary=f"uses {used:.0f} registers a thread, so that at most {occupancy:.0f} % of the "
        "warp slots can be filled"
        + ("." if issuing is None else f"; instructions issue in {issuing:.0%} of the cycles."),
        cause="Many values are live at once (a large tile of accumulators, deep unrolling), and "
        "the few warps that fit cannot cover the latency of loads and dependent arithmetic.",
        actions=(
            f"Halve the work kept per thread (tile or number of accumulators): about "
            f"{used / 2:.0f} registers would let twice as many warps run.",
            "Or cover the latency inside the thread: issue the next loads before using the "
            "current ones (software prefetch, cp.async).",
            "Try __launch_bounds__(threads, blocks); check that it does not spill.",
        ),
        evidence=seen(
            given, (m.REGISTERS, HIGH), (m.THEORETICAL_OCCUPANCY, OCCUPANCY),
            (m.LIMIT_REGISTERS, None), (m.ISSUE_ACTIVE, BUSY), (m.stall("long_scoreboard"), None),
        ),
        gain_source="Amdahl: latency stalls halved by twice the warps, at most full issue rate",
        moves=("reduce_registers", "launch_bounds", "smaller_tile"),
        confidence=0.8,
        useful=(m.ISSUE_ACTIVE, m.stall("long_scoreboard"), m.LIMIT_REGISTERS),
    )  # fmt: skip
