"""Index arithmetic - divisions, remainders, 64-bit products - that outweighs the real work."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import finding, issue_share, seen
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

SHARE = 0.45
"""Integer over all executed operations from which they rule (chosen; address arithmetic of
ordinary kernels is 10-35 %)."""
ISSUING = 0.45
"""Least issue rate: a kernel that waits for memory has time for integers (chosen)."""
MOVES = 0.2
"""Share of moves, predicates, branches and conversions in ordinary code (chosen; 15-25 % in the
hot loops of the planted-fault suite)."""
SAVED = 3.0
"""How much cheaper the arithmetic gets with shifts, magic numbers or 32-bit types (chosen)."""


@tool(
    "integer_arithmetic", devices=("cuda",), needs=(f"{m.INTEGER_OPS}|{m.PIPE_ALU}|sass.integer",)
)
def integer_arithmetic(given: ToolInput) -> Finding | None:
    """Integer operations are about half of all, in a kernel limited by instruction issue."""
    share = integer_share(given)
    issuing = issue_share(given)
    alu = number(given, m.PIPE_ALU, 0.0)
    if share is None or share < SHARE:
        return None
    if issuing is not None and issuing < ISSUING and alu < 100 * ISSUING:
        return None
    if number(given, m.PIPE_TENSOR, 0.0) >= 20.0:
        return None
    busy = max(issuing or 0.6, alu / 100.0)
    divisions = value(given, "sass.integer_divide") or 0.0
    divided = f", {divisions:.0f} of them parts of divisions" if divisions else ""
    return finding(
        given,
        "integer_arithmetic",
        gain.amdahl(min(share * busy / max(busy, 0.5), 0.95), SAVED),
        summary=f"{share:.0%} of its operations are integer{divided}; instructions issue in "
        f"{busy:.0%} of the cycles.",
        cause="Indices are computed by division and remainder with run-time divisors (20-30 "
        "instructions each in 32 bits, over 70 in 64 bits) or in 64-bit arithmetic.",
        actions=(
            "Map dimensions to blockIdx and threadIdx, so that no index has to be taken apart; "
            "or step indices by increments inside the loop.",
            "Make divisors compile-time constants or powers of two, or precompute multiplier and "
            "shift (fast division) on the host.",
            "Use 32-bit indices inside the kernel where the tensor allows; widen only the base.",
        ),
        evidence=seen(
            given, (m.INTEGER_OPS, None), (m.PIPE_ALU, None), (m.ISSUE_ACTIVE, ISSUING),
            ("sass.integer", None), ("sass.integer_divide", None),
        ),
        gain_source="Amdahl: integer share of an issue-limited kernel, made 3x cheaper",
        moves=("strength_reduce", "use_32bit_indices", "hoist_division"),
        confidence=0.85 if divisions else 0.75,
        useful=(m.INTEGER_OPS, "sass.integer_divide", m.ISSUE_ACTIVE),
    )  # fmt: skip


def integer_share(given: ToolInput) -> float | None:
    """Integer over all executed thread operations, else over those in the hot loop's code."""
    integers, total = value(given, m.INTEGER_OPS), value(given, m.THREAD_INSTRUCTIONS)
    if integers is not None:
        if total is None:
            warps = value(given, m.INSTRUCTIONS)
            lanes = number(given, m.ACTIVE_THREADS_PER_INSTRUCTION, 32.0)
            total = warps * lanes if warps else None
        if total:
            return min(integers / total, 1.0)
    scope = "sass.hot." if value(given, "sass.hot.total") else "sass."
    size = value(given, f"{scope}total")
    rest = _remainder(given)
    if size:
        in_code = number(given, f"{scope}integer", 0.0) / size
        return in_code if rest is None else min(in_code, rest)
    others = max(number(given, p, 0.0) for p in (m.PIPE_FMA, m.PIPE_FP64, m.PIPE_XU, m.PIPE_LSU))
    if rest is None or number(given, m.PIPE_ALU, 0.0) <= others:
        return None
    return max(rest - MOVES, 0.0)


def _remainder(given: ToolInput) -> float | None:
    """Share of executed operations that are neither floating-point nor memory accesses: no more can
    be integer, whatever a rarely run loop's code says. None if they were not counted."""
    parts = [value(given, name) for name in (m.FFMA, m.FADD, m.FMUL, m.HFMA, m.DFMA, m.DADD)]
    warps = value(given, m.INSTRUCTIONS)
    lanes = number(given, m.ACTIVE_THREADS_PER_INSTRUCTION, 32.0)
    if any(part is None for part in parts) or not warps:
        return None
    accesses = sum(
        number(given, name, 0.0) * 32.0
        for name in (m.GLOBAL_LOADS, m.GLOBAL_STORES, m.SHARED_LOADS, m.SHARED_STORES)
    )
    known = sum(part for part in parts if part is not None) + accesses
    return max(1.0 - known / (warps * lanes), 0.0)
