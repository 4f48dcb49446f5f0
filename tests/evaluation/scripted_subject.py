"""A subject whose times and findings are written down: timing logic without a clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelpro.isolation.base import Block, Call, Loaded, Operators, Outputs, Sample, TensorBytes

CLEAN: dict[str, Any] = {
    "changed_functions": [], "changed_flags": {}, "overriding_modes": 0, "python_threads": 1,
    "children": 0, "background_us": 0.0, "unknown_threads": 0, "late_writes": [],
    "guards_damaged": [],
}  # fmt: skip

Clock = Callable[[int, Call, bool], float]
"""(number of the call in its block, the call, are its values new) -> microseconds claimed."""


class ScriptedSubject:
    """Claims what ``clock`` says; ``unclaimed_us`` passes per call beyond that."""

    def __init__(self, clock: Clock, *, unclaimed_us: float = 5.0) -> None:
        self._clock = clock
        self._unclaimed_us = unclaimed_us
        self._seen: set[int] = set()
        self.blocks: list[list[Call]] = []
        self.written: list[int] = []

    def load(self) -> Loaded:
        return Loaded(state=(), artifacts=(), seconds={}, active_sandbox=())

    def write_state(self, tensors: Mapping[str, Any]) -> None:
        raise AssertionError("timing writes no weights")

    def write_inputs(self, slot: int, inputs: Sequence[Any]) -> None:
        self.written.append(slot)
        self._seen.discard(slot)

    def run(self, calls: Sequence[Call]) -> Block:
        self.blocks.append(list(calls))
        claimed = []
        for number, call in enumerate(calls):
            claimed.append(self._clock(number, call, call.slot not in self._seen))
            self._seen.add(call.slot)
        wall = sum(claimed) + self._unclaimed_us * len(calls) + 50.0
        samples = tuple(Sample(host_us=us) for us in claimed)
        return Block(samples=samples, wall_us=wall, flags=dict(CLEAN))

    def read_outputs(self, call: int) -> Outputs:
        raise AssertionError("not used")

    read_inputs = read_outputs

    def read_state(self) -> Mapping[str, TensorBytes]:
        raise AssertionError("not used")

    def audit(self, slot: int) -> Operators:
        raise AssertionError("not used")

    def cpu_us(self) -> float | None:
        return 0.0

    def at_work(self) -> bool | None:
        return False

    def log(self) -> str:
        return ""

    def close(self) -> None:
        return None
