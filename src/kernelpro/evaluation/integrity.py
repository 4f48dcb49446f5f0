"""Integrity checks by stable id: what they look at, and when they fail.

A failed check makes the outcome ``cheating``, whether it was meant or not: the number would not
be evidence. What a subject's process reports about itself can only add suspicion, never trust.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelpro.evaluation.floor import Floor
from kernelpro.evaluation.timing import Side, microseconds, settle
from kernelpro.isolation.base import Block, Call
from kernelpro.schema.outcome import IntegrityCheck
from kernelpro.text import format_us, printable

CHECKS = {
    "lazy_output": "outputs are plain tensors whose memory holds the values",
    "output_aliasing": "an output keeps its values when forward is called again",
    "input_mutation": "forward leaves its arguments as they were",
    "guard_bands": "nothing is written before or after an input",
    "late_writes": "an output does not change after forward has returned",
    "threads_after_return": "no Python thread works on after forward has returned",
    "result_reuse": "no answer is an earlier answer to other inputs",
    "determinism": "the same arguments give the same answer",
    "weights_reload": "weights loaded after construction and after calls are used",
    "poisoned_memory": "answers are right although recycled memory was overwritten",
    "flags_unchanged": "global torch settings are left alone",
    "functions_unchanged": "functions the harness and torch rely on are left alone",
    "clock_agreement": "the subject's clock agrees with the referee's",
    "memoised_inputs": "values seen before are not answered quicker than new ones",
    "call_count": "calls in a block cost what single calls cost, and later ones are right too",
    "physical_floor": "no call is quicker than moving its bytes",
}
"""Id -> what passing means. Ids are part of the record: they may be added, never renamed."""

REUSE_RATIO = 2.0
"""Chosen. Repeated values answered this much quicker than new ones, beyond what the baseline
shows (caches), is a lookup."""
REUSE_MIN_US = 50.0
LONE_RATIO, LONE_MIN_US = 4.0, 500.0
"""Chosen. Single calls may be slower (cold caches, sleeping thread pools) than calls of a block;
beyond this, work for later calls was done in earlier ones."""
CLOCK_SLACK_US, CLOCK_SLACK_SHARE = 500.0, 1.0
"""Chosen. Unclaimed time of a block that scheduling explains, and as a share of the baseline's."""
CLOCK_ATTEMPTS = 24
CLOCK_PAUSE_S = 0.01
"""Chosen. Blocks to look at before unclaimed time is believed, and how much longer to wait before
each: other load comes in bursts of many milliseconds."""
CLEARLY = 0.9
"""Chosen. The quickest new call must be slower than this share of the usual ones, or other load
on the machine explains the difference."""
CONFIRMATIONS = 20
"""Chosen. Tries a suspicious candidate gets to answer new values quickly."""
FEWEST = 3
"""Calls of a kind without which nothing can be said about it."""


class Findings:
    """The checks of one evaluation. A failure is final; a pass may be followed by a failure."""

    def __init__(self) -> None:
        self._checks: dict[str, IntegrityCheck] = {}

    def passed(self, check: str, detail: str = "") -> None:
        """Record a pass, unless the check has failed before."""
        self._set(IntegrityCheck(check=check, passed=True, detail=detail))

    def failed(self, check: str, detail: str) -> None:
        """Record a failure; the first one's detail is kept."""
        self._set(IntegrityCheck(check=check, passed=False, detail=detail))

    def unknown(self, check: str, detail: str) -> None:
        """Record that a check could not be run, and why."""
        if check not in self._checks:
            self._checks[check] = IntegrityCheck(check=check, passed=None, detail=detail)

    def decide(self, check: str, failure: str, detail: str = "") -> None:
        """Fail with ``failure`` if it is not empty, else pass with ``detail``."""
        if failure:
            self.failed(check, failure)
        else:
            self.passed(check, detail)

    @property
    def failure(self) -> IntegrityCheck | None:
        """The first failed check, None if there is none."""
        return next((c for c in self._checks.values() if c.passed is False), None)

    def result(self) -> tuple[IntegrityCheck, ...]:
        """All checks recorded so far, in the order of ``CHECKS``."""
        order = list(CHECKS)
        return tuple(sorted(self._checks.values(), key=lambda c: order.index(c.check)))

    def _set(self, check: IntegrityCheck) -> None:
        if check.check not in CHECKS:
            raise KeyError(check.check)
        known = self._checks.get(check.check)
        if known is None or known.passed is not False:
            self._checks[check.check] = check


def examine_block(findings: Findings, block: Block, *, first: bool) -> None:
    """What the harness saw after a block. ``first``: flags may have been changed by a lazy build
    (a library built with -ffast-math flushes denormals when it is loaded) and were put back."""
    flags = block.flags
    functions = _names(flags.get("changed_functions"))
    findings.decide("functions_unchanged", functions and f"replaced: {functions}")
    changed = _names(list(_mapping(flags.get("changed_flags"))))
    if first and changed:
        findings.passed("flags_unchanged", f"changed by the first calls and put back: {changed}")
    else:
        findings.decide("flags_unchanged", changed and f"changed by forward: {changed}")
    modes = _count(flags.get("overriding_modes"))
    findings.decide(
        "lazy_output", f"{modes} torch function or dispatch modes left active" if modes else ""
    )
    threads = _count(flags.get("python_threads"))
    children = _count(flags.get("children"))
    findings.decide(
        "threads_after_return",
        f"{threads - 1} Python threads still running after forward returned" if threads > 1 else "",
        f"{children} child processes" if children else "",
    )
    late = _calls(flags.get("late_writes"))
    findings.decide("late_writes", late and f"outputs of calls {late} changed after the call")
    damaged = _calls(flags.get("guards_damaged"))
    findings.decide("guard_bands", damaged and f"written outside the inputs of calls {damaged}")


def examine_values(
    findings: Findings, side: Side, baseline: Side, rewrite: Callable[[int], None]
) -> None:
    """Are values seen before, or calls after the first of a block, suspiciously quick?

    The quickest call on new values is held against the typical one, and suspicion is put to the
    test: noise only ever adds time, a lookup or shared work saves it on every call. ``rewrite``
    puts new values into a slot on all sides.
    """
    reuse = Comparison("memoised_inputs", "new values", "values seen before",
                       REUSE_RATIO, REUSE_MIN_US)  # fmt: skip
    single = Comparison("call_count", "single calls", "calls in a block",
                        LONE_RATIO, LONE_MIN_US)  # fmt: skip
    for which, comparison in enumerate((reuse, single)):
        new, usual = (
            (side.fresh_values, side.seen_values) if which == 0 else (side.lone, _pooled(side))
        )
        if len(new) < FEWEST or len(usual) < FEWEST:
            findings.unknown(comparison.check, f"fewer than {FEWEST} calls of a kind")
            continue
        if min(new) < np.quantile(usual, CLEARLY):
            findings.passed(comparison.check, comparison.told((min(new), float(np.median(usual)))))
            continue
        own = min(new), float(np.median(usual))
        honest = float("inf"), float("inf")
        for _ in range(CONFIRMATIONS):
            if not comparison.suspicious(own):
                break
            rewrite(0)
            mine, theirs = _probe(side)[which], _probe(baseline)[which]
            own = min(own[0], mine[0]), own[1]
            honest = min(honest[0], theirs[0]), min(honest[1], theirs[1])
        caught = comparison.suspicious(own) and comparison.beyond(own, honest)
        findings.decide(comparison.check, comparison.told(own) if caught else "",
                        comparison.told(own))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """New against usual calls of one check, in microseconds."""

    check: str
    new_text: str
    usual_text: str
    ratio: float
    least_us: float

    def suspicious(self, own: tuple[float, float]) -> bool:
        """Are new calls much slower than usual ones?"""
        return own[0] > self.ratio * own[1] and own[0] - own[1] > self.least_us * crowding()

    def beyond(self, own: tuple[float, float], honest: tuple[float, float]) -> bool:
        """Is the gap more than ``ratio`` times what the baseline shows in the same minutes?"""
        return own[0] - own[1] > self.ratio * (honest[0] - honest[1])

    def told(self, own: tuple[float, float]) -> str:
        """The numbers, for the record."""
        return (
            f"{self.new_text} take at least {format_us(own[0])}, "
            f"{self.usual_text} {format_us(own[1])}"
        )


def _probe(side: Side) -> tuple[tuple[float, float], tuple[float, float]]:
    """Slot 0 holds new values: (new, seen again) in a warm block, and (single, in a block)."""
    warm, new = [side.call(1)] * 2, side.call(0)
    block = side.subject.run([*warm, new, *[new] * FEWEST])
    times = [microseconds(sample) for sample in block.samples]
    single = microseconds(side.subject.run([side.call(2)]).samples[0])
    seen = min(times[3:])
    return (times[2], seen), (single, seen)


def crowding() -> float:
    """Runnable processes per core, at least 1: how much longer a call may wait for its turn."""
    return max(1.0, os.getloadavg()[0] / max(1, os.cpu_count() or 1))


def examine_clocks(findings: Findings, side: Side, baseline: Side, calls: Sequence[Call]) -> None:
    """Run the same block on both sides: time that passed but was not claimed must be alike.

    Best of several: a busy machine adds unclaimed time, a slow clock does so every time.
    """
    claimed = hidden = usual = float("inf")
    caught = True
    for attempt in range(CLOCK_ATTEMPTS):
        settle(baseline)
        usual = min(usual, _unclaimed(baseline.subject.run(calls)))
        settle(side)
        block = side.subject.run(calls)
        _compare_device_clock(findings, block)
        hidden = min(hidden, _unclaimed(block))
        claimed = min(claimed, sum(sample.host_us for sample in block.samples))
        slack = max(claimed, max(CLOCK_SLACK_US, CLOCK_SLACK_SHARE * usual) * crowding())
        caught = hidden - usual > slack or hidden < -CLOCK_SLACK_US
        if attempt and not caught:
            break
        time.sleep(CLOCK_PAUSE_S * min(attempt, 10))
    told = (
        f"{len(calls)} calls claim {format_us(max(claimed, 0.0))}; beyond the harness's own "
        f"overhead {format_us(max(hidden - usual, 0.0))} passed unclaimed"
    )
    findings.decide("clock_agreement", told if caught else "", told)


def _unclaimed(block: Block) -> float:
    return block.wall_us - sum(sample.host_us for sample in block.samples)


def examine_floor(findings: Findings, floor: Floor | str, side: Side) -> None:
    """Compare the median with the physical floor."""
    if isinstance(floor, str):
        findings.unknown("physical_floor", floor)
        return
    median = float(np.median(np.concatenate(side.rounds)))
    told = (
        f"{format_us(median)} against {format_us(floor.us)} to move {floor.bytes} bytes at "
        f"{floor.gb_s:.0f} GB/s ({floor.level})"
    )
    findings.decide(
        "physical_floor", f"impossible: {told}" if floor.impossible(median) else "", told
    )


def _compare_device_clock(findings: Findings, block: Block) -> None:
    """Event time above host time is a forged event (EVAL_PITFALLS 1: 10 % + 20 us)."""
    for sample in block.samples:
        if sample.device_us is not None and sample.device_us > 1.1 * sample.host_us + 20.0:
            findings.failed(
                "clock_agreement",
                f"device events claim {format_us(sample.device_us)} within "
                f"{format_us(sample.host_us)} of host time",
            )


def typical_us(side: Side) -> float:
    """Median over all timed calls of a side."""
    return float(np.median(np.concatenate(side.rounds)))


def _pooled(side: Side) -> list[float]:
    return [float(value) for values in side.rounds for value in values]


def _names(value: Any) -> str:
    """A reported list of names as text; it comes from a process that is not trusted."""
    items = value if isinstance(value, list) else []
    return printable(", ".join(str(item) for item in items[:10]))[:400]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


def _calls(value: Any) -> str:
    items = value if isinstance(value, list) else []
    return ", ".join(str(item) for item in items[:10] if type(item) is int)
