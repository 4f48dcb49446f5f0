"""One subject in a timed comparison, and what was measured of it. Plays no match."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelpro.evaluation import statistics
from kernelpro.evaluation.statistics import Samples
from kernelpro.isolation import proctree
from kernelpro.isolation.base import Block, Call, Sample, Subject, SubjectFailure
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.outcome import Latency

HOST_TIMER = "monotonic"
"""The clock of a device whose calls return when they are done. Others have clocks of their own."""
SPIN_S = 0.04
"""Measured. Threads of an OpenMP team spin this long after their last region (GNU's default of
300,000 pauses takes some 20 ms on recent cores); whoever runs next would share a core with them."""
LOOK_S, IDLE_LOOKS = 1e-3, 2
"""Chosen. How often to look whether they still do, and how many looks in a row must find none."""
LEAST_US = 0.05
"""No call of a Python function is quicker; a claim of less is taken as this, and looked into."""


@dataclass(slots=True, kw_only=True)
class Side:
    """One subject in the comparison, and what was measured of it."""

    name: str
    subject: Subject
    timer: str = HOST_TIMER
    event_overhead_us: float = 0.0
    """What events say beyond the kernels between them, taken off (``Peaks.event_overhead_us``)."""
    always_fresh: bool = False
    """Every call gets a copy of its inputs: for problems that change them in place."""
    decides: bool = True
    """Measuring goes on until its interval is narrow."""
    warm_us: float = 0.0
    """Quickest call of the warm-up: other load on the machine only adds time."""
    stable: bool = True
    rounds: list[Samples] = field(default_factory=list)
    lone: list[float] = field(default_factory=list)
    """Single calls on values just written: nothing to share work with."""
    fresh_values: list[float] = field(default_factory=list)
    """Timed calls that saw their values for the first time ..."""
    seen_values: list[float] = field(default_factory=list)
    """... and calls on values seen before."""
    idle: list[Samples] = field(default_factory=list)
    """GPU: host times of calls that found an empty queue, by round."""
    blocks: list[Block] = field(default_factory=list)
    beyond_events: list[float] = field(default_factory=list)
    """Of queued calls on a GPU: time until all its streams were done, beyond the events'."""
    idle_waits: list[float] = field(default_factory=list)
    """Of calls on an idle device: host time from the last launch to the end."""
    issues: list[float] = field(default_factory=list)
    """Of those calls: host time until forward returned, its launches issued."""
    slowest_warm_us: float = 0.0
    rest_cpu_us: float | None = 0.0
    """CPU time its processes took while other sides were measured ..."""
    rest_wall_us: float = 0.0
    """... which took this long. None = not known."""
    answers: dict[int, tuple[int | None, ...]] = field(default_factory=dict)
    """Slot -> digests of the first answer to its present values."""

    @classmethod
    def on(cls, device: Device, peaks: Peaks | None, **given: Any) -> Side:
        """A side that is timed as this device's kind is; ``given``: the other fields."""
        if device.kind == "cpu":
            return cls(**given)
        overhead_us = (peaks.event_overhead_us if peaks is not None else None) or 0.0
        return cls(timer="cuda_event", event_overhead_us=overhead_us, **given)

    def time_us(self, sample: Sample) -> float:
        """The time that counts: the device's where there is one, else the host's."""
        if sample.device_us is None:
            return max(LEAST_US, sample.host_us)
        return max(LEAST_US, sample.device_us - self.event_overhead_us)

    def odd_answers(self, calls: Sequence[Call], block: Block) -> list[int]:
        """Calls of ``block`` whose answer is not, bit for bit, the first to the same values."""
        pairs = enumerate(zip(calls, block.digests, strict=False))
        return [
            number
            for number, (call, digests) in pairs
            if self.answers.setdefault(call.slot, digests) != digests
        ]

    def call(self, slot: int, *, fresh: bool = False) -> Call:
        """A call on ``slot``."""
        return Call(slot=slot, fresh_address=fresh or self.always_fresh)

    def typical_us(self) -> float:
        """Median of the last round; before the first, the quickest call of the warm-up."""
        return float(np.median(self.rounds[-1])) if self.rounds else self.warm_us

    def latency(self, used: Sequence[int]) -> Latency:
        """Median with interval over the timed calls of the rounds ``used``."""
        rounds = [self.rounds[number] for number in used]
        estimate = statistics.median_ci(rounds)
        on_device = self.timer != HOST_TIMER
        return Latency(
            median_us=estimate.value,
            ci95_us=(estimate.low, estimate.high),
            samples=tuple(float(v) for r in rounds for v in r),
            timer=self.timer,
            rounds=tuple(float(np.median(r)) for r in rounds),
            kind="device" if on_device else "launch_inclusive",
            device_median_us=estimate.value if on_device else None,
            launch_inclusive_median_us=(
                float(np.median(np.concatenate(self.idle))) if self.idle else None
            ),
        )


class SideFailed(Exception):
    """A side's subject ended, or its timed answer was refused, during a match."""

    def __init__(self, side: Side, failure: SubjectFailure) -> None:
        super().__init__(failure.message)
        self.side = side
        self.failure = failure


@contextmanager
def attributed(side: Side | None) -> Iterator[None]:
    """A ``SubjectFailure`` inside belongs to ``side``."""
    try:
        yield
    except SubjectFailure as failure:
        if side is None:
            raise
        raise SideFailed(side, failure) from failure


def settle(sides: Sequence[Side]) -> None:
    """Let the threads of whoever ran before go to sleep: on a CPU they spin beside who is next.

    Until none of ``sides`` or of this process is at work any more, for ``SPIN_S`` at most.
    """
    if sides[0].timer != HOST_TIMER:
        return
    deadline, idle = time.perf_counter() + SPIN_S, 0
    while idle < IDLE_LOOKS and time.perf_counter() < deadline:
        time.sleep(LOOK_S)
        # Unknown counts as at work.
        works = any(side.subject.at_work() is not False for side in sides)
        idle = 0 if works or proctree.others_at_work() else idle + 1
