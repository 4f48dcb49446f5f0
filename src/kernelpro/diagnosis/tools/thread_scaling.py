"""The call leaves CPU cores idle, or uses several and gains nothing by it."""

from __future__ import annotations

from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.evidence import absent, call_us, number, observed, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding, Severity
from kernelpro.schema.hardware import Peaks
from kernelpro.text import format_us

USED = 0.7
"""Threads in use below this share of the available ones are too few (chosen)."""
SPEEDUP_PER_THREAD = 0.6
"""Speed-up below this share of what the threads could give is poor scaling (chosen)."""
DISTURBED = 2.0
"""Context switches per call and thread beyond which other programs took the cores: the measured
scaling is then theirs, not the code's (chosen: starting and joining costs one or two)."""
SMALLEST_US = 50.0
"""Below this a parallel region does not pay on common machines (chosen; 5-10 us to start)."""


@tool(
    "thread_scaling",
    devices=("cpu",),
    needs=("cpu.threads_used", "cpu.threads_available"),
)
def thread_scaling(given: ToolInput) -> Finding | None:
    """Serial code on several cores: high. Poor scaling of a parallel one: medium."""
    used = number(given, "cpu.threads_used", 1.0)
    available = number(given, "cpu.threads_available", 1.0)
    duration = call_us(given)
    if available < 2:
        return None
    attainable = _attainable(given.peaks, available, given.stage1.analytic == "memory")
    if used < USED * available:
        if duration is not None and duration < SMALLEST_US:
            return None
        return _idle(given, used, available, attainable, duration)
    speedup = value(given, "cpu.thread_speedup")
    if speedup is None or speedup >= SPEEDUP_PER_THREAD * attainable:
        return None
    if number(given, "cpu.context_switches_per_call", 0.0) > DISTURBED * available:
        return None
    return _poor(given, available, attainable, speedup)


def _attainable(peaks: Peaks | None, threads: float, memory_bound: bool) -> float:
    """Speed-up of ``threads`` over one that this machine gives to such work, by measurement."""
    if peaks is not None:
        table = peaks.copy_gb_s_by_threads if memory_bound else peaks.flops_by_threads
        one, most = table.get("1"), table.get(str(int(threads)))
        if one and most:
            return max(most / one, 1.0)
    return threads


def _idle(
    given: ToolInput, used: float, available: float, attainable: float, duration: float | None
) -> Finding:
    high = attainable / max(used, 1.0) if attainable > used else 1.0
    took = "" if duration is None else f" for {format_us(duration)}"
    return Finding(
        tool="thread_scaling",
        severity=Severity.HIGH if high >= 1.3 else Severity.MEDIUM,
        rank=0,
        summary=f"{given.kernel.name}: {used:.1f} of {available:.0f} threads are busy{took}.",
        evidence=(observed(given, "cpu.threads_used", USED * available),),
        cause="The work is not split over the cores, or is split so unevenly that most of them "
        "wait for one.",
        actions=(
            f"Put #pragma omp parallel for on the outermost independent loop of "
            f"{given.kernel.name}, with at least {2 * available:.0f} equal pieces.",
            "If the outermost loop is short, collapse it with the next one (collapse(2)), or "
            "split the reduction and add the parts.",
        ),
        expected_gain=gain.interval(high, given.stage1.headroom),
        missing=absent(given, ("cpu.thread_speedup",)),
        confidence=0.85,
        moves=("use_threads",),
        example="#pragma omp parallel for schedule(static)\nfor (long i = 0; i < rows; ++i) ...",
        gain_source="measured scaling of this machine (bandwidth or FMA rate by thread count) "
        "over the threads in use, capped by the headroom",
    )


def _poor(given: ToolInput, available: float, attainable: float, speedup: float) -> Finding:
    slower = speedup < 1.0
    high = max(1.0 / speedup, 1.0) if slower else attainable / speedup
    return Finding(
        tool="thread_scaling",
        severity=Severity.HIGH if slower else Severity.MEDIUM,
        rank=0,
        summary=f"{given.kernel.name}: {available:.0f} threads are {speedup:.2f}x as fast as one; "
        f"this machine gives such work {attainable:.2f}x.",
        evidence=(observed(given, "cpu.thread_speedup", SPEEDUP_PER_THREAD * attainable),),
        cause="Starting and joining the threads costs more than they save."
        if slower
        else "The pieces are uneven, too small, or write to the same cache lines.",
        actions=(
            "Run this size on one thread (if clause on the parallel pragma)."
            if slower
            else "Give each thread one contiguous, equally large piece, and keep per-thread "
            "results in local variables until the end.",
            "Merge neighbouring parallel regions, so that threads start once per call.",
        ),
        expected_gain=gain.interval(high, given.stage1.headroom),
        confidence=0.7,
        moves=("fewer_threads",) if slower else ("use_threads", "larger_tile"),
        gain_source="measured scaling of this machine over the scaling of this call"
        if not slower
        else "time with all threads over time with one",
    )
