"""The reason warps wait for most, when no tool names a cause for it."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import (
    MEMORY_STALLS,
    NOT_STALLS,
    SATURATED,
    SHARED_STALLS,
    finding,
    issue_share,
    memory_saturated,
    seen,
    stall_shares,
)
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

DOMINANT = 0.40
"""Share of one reason in a warp's time from which it dominates (paper; critical there at 0.6); for
a dependence its share in all stalls, as issuing itself fills much of the time there."""
BUSY = 0.85
"""Share of issuing cycles from which waiting warps cost nothing (chosen; the gain is capped by what
is left to full issue rate)."""
DEPENDENCE = ("wait", "branch_resolving", "no_instruction")
"""Reasons that lie in the instruction stream itself, however busy the SM is."""
TENSOR = 60.0
"""Percent of tensor pipe use from which the matrix unit, not waiting for it, is the limit (chosen;
NVIDIA's Speed-of-Light rule calls 60 % busy)."""
HIDDEN = 0.5
"""How much of a dominant stall can usually be hidden (chosen)."""


class Reason(NamedTuple):
    """What a stall reason means and what helps."""

    cause: str
    action: str
    moves: tuple[str, ...]


REASONS: dict[str, Reason] = {
    "long_scoreboard": Reason(
        "Each warp waits for data from global or local memory before it can go on: dependent "
        "loads, or too few independent loads in flight.",
        "Issue several independent loads before using the first (process 2-4 elements per "
        "thread, unroll, prefetch the next tile), and break chains in which one load's address "
        "comes from another.",
        ("more_work_per_thread", "unroll_more", "async_copy"),
    ),
    "short_scoreboard": Reason(
        "Each warp waits for shared memory or the special-function unit.",
        "Keep values in registers between uses, read shared memory in 128-bit pieces, and issue "
        "independent work between the access and its use.",
        ("vectorize_loads", "more_work_per_thread"),
    ),
    "wait": Reason(
        "Each warp waits the fixed latency of its own previous instruction: one long chain of "
        "dependent arithmetic.",
        "Work on 2-4 independent elements or accumulators per thread, so that the chains overlap.",
        ("more_accumulators", "more_work_per_thread"),
    ),
    "lg_throttle": Reason(
        "The queue for global and local accesses is full: too many small accesses.",
        "Use fewer, wider accesses (128-bit), and combine neighbouring ones.",
        ("vectorize_loads",),
    ),
    "mio_throttle": Reason(
        "The queue for shared memory, shuffles and special functions is full.",
        "Fewer, wider shared-memory accesses; keep reused values in registers.",
        ("vectorize_loads", "more_work_per_thread"),
    ),
    "math_pipe_throttle": Reason(
        "Warps are ready but their arithmetic pipe is taken.",
        "Move work to another pipe or do less of it; the pipe itself is the limit.",
        ("strength_reduce", "approximate_math"),
    ),
    "branch_resolving": Reason(
        "Warps wait for branch targets: short loops and many jumps.",
        "Unroll the inner loop and replace short branches by selects.",
        ("unroll_more", "branch_free"),
    ),
    "no_instruction": Reason(
        "Warps wait for instructions: the code is larger than the instruction cache, or jumps.",
        "Unroll less; keep the hot loop within a few hundred instructions.",
        ("unroll_less",),
    ),
    "membar": Reason(
        "Warps wait for memory fences.",
        "Use the narrowest fence (block scope) and fewer of them.",
        ("fewer_barriers",),
    ),
    "drain": Reason(
        "Warps wait at their end for stores to leave.",
        "Store contiguously and in 128-bit pieces.",
        ("vectorize_loads",),
    ),
    "gmma": Reason(
        "Warps wait for the warpgroup matrix instructions they issued.",
        "Keep more than one group in flight (wait with a count above 0), deepen the pipeline of "
        "tiles, or use larger tiles.",
        ("async_copy", "larger_tile"),
    ),
}  # fmt: skip
_OTHER = Reason(
    "Warps spend most of their time in this state.",
    "Look at the hot lines of the kernel for what causes it.",
    (),
)


@tool("warp_stall", devices=("cuda",), needs=(m.stall("long_scoreboard"), m.ISSUE_ACTIVE))
def warp_stall(given: ToolInput) -> Finding | None:
    """One reason takes 40 % or more of a warp's time and the schedulers starve.

    Waiting for a unit that is saturated is a symptom: other tools ask whether its work is needed.
    """
    shares = {r: s for r, s in stall_shares(given).items() if r not in (*NOT_STALLS, "barrier")}
    issuing = issue_share(given) or 0.0
    reason = next(iter(shares), None)
    if reason is None or issuing >= BUSY:
        return None
    whole = sum(shares.values()) if reason in DEPENDENCE else 1.0
    if shares[reason] < DOMINANT * whole:
        return None
    if _is_symptom(given, reason):
        return None
    known = REASONS.get(reason, _OTHER)
    share = shares[reason]
    return finding(
        given,
        "warp_stall",
        min(gain.amdahl(share * HIDDEN), 1.0 / max(issuing, 0.05)),
        summary=f"warps spend {share:.0%} of their time in stall {reason}; instructions issue in "
        f"{issuing:.0%} of the cycles.",
        cause=known.cause,
        actions=(known.action, *_chain(given, reason)),
        evidence=seen(
            given, (m.stall(reason), None), (m.LATENCY_PER_ISSUE, None), (m.ISSUE_ACTIVE, BUSY),
            (m.ELIGIBLE_WARPS, None),
        ),
        gain_source="Amdahl: half of the dominant stall hidden, at most full issue rate",
        moves=known.moves,
        confidence=0.5,
        useful=(m.ELIGIBLE_WARPS,),
    )  # fmt: skip


def _chain(given: ToolInput, reason: str) -> tuple[str, ...]:
    """What the machine code adds: loads in the loop that need the previous pass's load."""
    chained = value(given, "sass.chained")
    if reason != "long_scoreboard" or not chained:
        return ()
    return (
        f"{chained:.0f} load(s) of the loop take their address from the load before: one thread "
        "cannot go faster than one memory latency a step, so follow several chains per thread or "
        "store the data in the order it is visited.",
    )


def _is_symptom(given: ToolInput, reason: str) -> bool:
    """True where a saturated unit, or too short a kernel, explains the waiting."""
    if given.stage1.measured == "launch" or number(given, m.PIPE_TENSOR, 0.0) >= TENSOR:
        return True
    if reason in MEMORY_STALLS and memory_saturated(given):
        return True
    own_fault = reason in SHARED_STALLS or reason in DEPENDENCE
    return not own_fault and number(given, m.SM_PCT, 0.0) >= SATURATED
