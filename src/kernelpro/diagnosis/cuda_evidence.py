"""Quantities derived from several counters that CUDA tools share. No thresholds, no advice."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.evidence import absent, number, observed, value
from kernelpro.diagnosis.roofline import total_us
from kernelpro.diagnosis.waste import requested_over_fetched
from kernelpro.schema.finding import Evidence, Finding, Severity
from kernelpro.schema.profile import KernelProfile

NOT_STALLS = ("selected", "not_selected")
MEMORY_STALLS = ("long_scoreboard", "lg_throttle", "tex_throttle", "drain", "membar")
SHARED_STALLS = ("short_scoreboard", "mio_throttle")
WARP = 32.0
PRODUCTS = 0.2
"""Share of multiply-adds in the instructions of a product (chosen: a naive one has a quarter)."""
REUSE = 4.0
"""Requested over fetched bytes from which data is used again (chosen; a stream has 1)."""
TILED_FMA = 30.0
"""Percent of the multiply-add pipe from which a product is tiled in registers (chosen)."""
PER_LOAD_TILED, PER_LOAD = 8.0, 4.0
"""Most multiply-adds per load instruction of a product, tiled in registers or not (chosen: a 4 x 4
tile with 128-bit loads has 8, a naive product 0.5; a polynomial has its degree)."""
SATURATED = 70.0
"""Percent of a memory level's peak from which requests queue up (chosen; the wait in a queue with
random arrivals is 2.3 times the service at 70 % load)."""


def stall_shares(given: ToolInput) -> dict[str, float]:
    """Warp state -> share of a warp's time between two issues (0..1), largest first.

    Empty if no stall counter was read: that is missing evidence, not "no stalls".
    """
    cycles = {reason: value(given, m.stall(reason)) for reason in m.STALLS}
    known = {reason: part for reason, part in cycles.items() if part is not None}
    total = max(number(given, m.LATENCY_PER_ISSUE, 0.0), sum(known.values()))
    if not known or total <= 0:
        return {}
    return dict(sorted(((r, part / total) for r, part in known.items()), key=lambda item: -item[1]))


def stall_share(given: ToolInput, *reasons: str) -> float | None:
    """Sum of the shares of ``reasons``; None if stalls were not measured."""
    shares = stall_shares(given)
    return sum(shares.get(reason, 0.0) for reason in reasons) if shares else None


def memory_share(given: ToolInput) -> float:
    """Share of the time that L2 and DRAM plausibly cost: busy, or waited for."""
    busy = [number(given, name, 0.0) / 100.0 for name in (m.DRAM_PCT, m.L2_PCT)]
    if value(given, m.DRAM_PCT) is None:
        busy.append(number(given, m.MEMORY_PCT, 0.0) / 100.0)
    return min(max(*busy, stall_share(given, *MEMORY_STALLS) or 0.0), 1.0)


def l1_share(given: ToolInput) -> float:
    """Share of the time that global accesses plausibly cost in L1 and the load-store path."""
    busy = [number(given, name, 0.0) / 100.0 for name in (m.L1_PCT, m.PIPE_LSU, m.LSU_DATA_PCT)]
    own = max(busy) * (1.0 - shared_portion(given))
    return min(max(own, stall_share(given, "lg_throttle") or 0.0), 1.0)


def shared_portion(given: ToolInput) -> float:
    """Share of the load-store data path's work that is for shared memory, 0..1.

    Wavefronts for shared memory over all of them, which are the path's use times its cycles (one
    wavefront a cycle and multiprocessor).
    """
    own, used = value(given, m.SHARED_WAVEFRONTS), value(given, m.LSU_DATA_PCT)
    cycles, units = value(given, m.ELAPSED_CYCLES), multiprocessors(given)
    if own is None or not used or not cycles or not units:
        return 0.0
    return min(own / (used / 100.0 * cycles * units), 1.0)


def dram_saturated(given: ToolInput) -> bool:
    """True if DRAM is so busy that only fewer bytes help."""
    return number(given, m.DRAM_PCT, 0.0) >= SATURATED


def memory_saturated(given: ToolInput) -> bool:
    """True if some level of memory is so busy that waiting for it is queueing, not latency."""
    busy = (number(given, name, 0.0) for name in (m.MEMORY_PCT, m.DRAM_PCT, m.L2_PCT))
    return max(busy) >= SATURATED


def issue_share(given: ToolInput) -> float | None:
    """Share of cycles in which a scheduler issued an instruction (0..1)."""
    return value(given, m.ISSUE_ACTIVE)


def registers(given: ToolInput) -> float | None:
    """Registers per thread by the profiler, else by the compiler."""
    found = value(given, m.REGISTERS)
    if found is None and given.kernel.resources is not None:
        reported = given.kernel.resources.registers
        return None if reported is None else float(reported)
    return found


def threads_per_block(given: ToolInput) -> float | None:
    """Threads of a block."""
    found = value(given, m.BLOCK_SIZE)
    if found is None and given.kernel.block is not None:
        x, y, z = given.kernel.block
        return float(x * y * z)
    return found


def blocks(given: ToolInput) -> float | None:
    """Blocks of the grid."""
    found = value(given, m.GRID_SIZE)
    if found is None and given.kernel.grid is not None:
        x, y, z = given.kernel.grid
        return float(x * y * z)
    return found


def multiprocessors(given: ToolInput) -> float | None:
    """Multiprocessors of the device, by the report or by probing."""
    found = value(given, m.SM_COUNT)
    if found is None and given.device is not None and given.device.kind == "cuda":
        return float(given.device.units)
    return found


def capability(given: ToolInput) -> int | None:
    """Compute capability as one number, for example 90."""
    found = value(given, m.CAPABILITY)
    if found is not None:
        return int(found)
    if given.device is not None and given.device.capability is not None:
        major, minor = given.device.capability
        return major * 10 + minor
    return None


def limits(given: ToolInput) -> dict[str, float]:
    """What limits the blocks per SM -> how many it allows, tightest first."""
    names = {
        "registers": m.LIMIT_REGISTERS, "shared memory": m.LIMIT_SHARED, "warps": m.LIMIT_WARPS,
        "blocks": m.LIMIT_BLOCKS, "barriers": m.LIMIT_BARRIERS,
    }  # fmt: skip
    known = {what: value(given, name) for what, name in names.items()}
    return dict(
        sorted(((w, v) for w, v in known.items() if v is not None), key=lambda item: item[1])
    )


def matmul_like(given: ToolInput) -> bool | None:
    """True if the kernel multiplies matrices: by the problem where it is the call's only kernel
    or the problem has no product, else by what it executes (beside a library's product, a tail is
    none).

    Enough of the instructions are multiply-adds, operands are loaded often enough (register-only
    loops and polynomials are not products), and loaded data is used again (a scaled addition is
    none either). By the counters where they were read, else by the hot loop's code, which may be a
    loop that runs rarely. None = no evidence either way.
    """
    if given.graph is not None and not given.graph.has_matmul:
        return False
    if given.graph is not None and len(given.profile.kernels) == 1:
        return True
    tiled = number(given, m.PIPE_FMA, TILED_FMA) >= TILED_FMA
    per_load = PER_LOAD_TILED if tiled else PER_LOAD
    counted = [value(given, name) for name in (m.FFMA, m.HFMA)]
    executed = value(given, m.INSTRUCTIONS)
    if counted[0] is not None and executed:
        products = sum(part or 0.0 for part in counted) / WARP
        loads = number(given, m.SHARED_LOADS, 0.0) + number(given, m.GLOBAL_LOADS, 0.0)
        enough = products / executed >= PRODUCTS and loads * per_load >= products
        return enough and _reuses(given)
    scope = "sass.hot." if value(given, "sass.hot.total") else "sass."
    total = value(given, f"{scope}total")
    if not total:
        return None
    products = sum(number(given, scope + key, 0.0) for key in ("ffma", "hfma"))
    loads = sum(number(given, scope + key, 0.0) for key in ("lds", "ldg"))
    return products / total >= PRODUCTS and loads * per_load >= products


def _reuses(given: ToolInput) -> bool:
    """True if operands come from shared memory or are asked for repeatedly, or nobody knows."""
    if number(given, m.SHARED_LOADS, 0.0) > number(given, m.GLOBAL_LOADS, 0.0):
        return True
    reuse = requested_over_fetched(given)
    return reuse is None or reuse >= REUSE


def where(given: ToolInput) -> str:
    """`` (kernel.cu:12)`` for the hottest known source line, else nothing."""
    lines = given.kernel.source_lines
    if not lines:
        return ""
    return f" ({lines[0].file.rsplit('/', 1)[-1]}:{lines[0].line})"


def short_name(given: ToolInput) -> str:
    """The kernel's name without return type, template arguments and parameters."""
    name = given.kernel.name.split("(")[0].split("<")[0].strip()
    return (name.split(" ")[-1].split("::")[-1] or given.kernel.name)[:60]


def seen(given: ToolInput, *wanted: tuple[str, float | None]) -> tuple[Evidence, ...]:
    """Evidence for those of ``(metric, threshold)`` that were measured."""
    return tuple(
        observed(given, name, threshold)
        for name, threshold in wanted
        if value(given, name) is not None
    )


def finding(
    given: ToolInput,
    tool: str,
    high: float,
    *,
    summary: str,
    cause: str,
    actions: tuple[str, ...],
    evidence: tuple[Evidence, ...],
    gain_source: str,
    moves: tuple[str, ...],
    confidence: float = 0.8,
    useful: tuple[str, ...] = (),
    example: str = "",
    at_most: Severity = Severity.CRITICAL,
) -> Finding:
    """A finding whose severity follows from its expected gain, capped by the headroom.

    ``useful`` are metrics that would have sharpened the judgement: the absent ones are listed.
    """
    interval = gain.interval(high, given.stage1.headroom)
    severity = max(
        gain.severity(interval[1]), at_most, key=lambda s: list(Severity).index(s)
    )  # the list runs from critical to info: the larger index is the milder one
    return Finding(
        tool=tool,
        severity=severity,
        rank=0,
        summary=f"{short_name(given)}{where(given)}: {summary}",
        evidence=evidence,
        cause=cause,
        actions=actions,
        expected_gain=interval,
        missing=absent(given, useful),
        confidence=confidence,
        moves=moves,
        example=example,
        gain_source=gain_source + "; capped by the headroom",
    )


def time_shares(given: ToolInput) -> list[tuple[float, KernelProfile]]:
    """(share of the device time, kernel) for all kernels of the profile with a known time."""
    times = [(total_us(kernel), kernel) for kernel in given.profile.kernels]
    whole = sum(time for time, _ in times if time is not None)
    return [(time / whole, k) for time, k in times if time is not None and whole > 0]


def is_hottest(given: ToolInput) -> bool:
    """True if no other kernel of the profile takes more time (or no times are known)."""
    shares = time_shares(given)
    return not shares or max(shares, key=lambda item: item[0])[1] is given.kernel
