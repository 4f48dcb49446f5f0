"""The referee's side of timing: what is called, in which order, how often, and when to stop.

All sides (baseline, candidates) are measured in the same rounds, in an order that is reversed
from one round to the next (ABBA), on the same input values. Blocks mix old and new values at old
and new addresses in random order (EVAL_PITFALLS 5-8), and outputs of timed calls are handed to a
verifier. The numbers are what each subject's process claims; ``integrity`` holds them against
the referee's own clock.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelpro.evaluation import statistics
from kernelpro.evaluation.side import (
    HOST_TIMER as HOST_TIMER,
)
from kernelpro.evaluation.side import (
    Side as Side,
)
from kernelpro.evaluation.side import (
    SideFailed as SideFailed,
)
from kernelpro.evaluation.side import (
    attributed,
    settle,
)
from kernelpro.evaluation.statistics import Estimate, Samples
from kernelpro.isolation.base import Block, Call
from kernelpro.schema.config import EvaluationConfig

SLOTS = 3
"""Chosen. Distinct values in play at a time; each is rewritten in turn."""
FRESH_SHARE = 0.25
"""Chosen. Share of timed calls whose inputs lie at new addresses."""
MAX_CALLS = 128
"""Chosen. Longest block: bounds a round's time and the outputs a subject must hold."""
MAX_BLOCK_BYTES, MAX_BLOCK_BYTES_GPU = 512 << 20, 8 << 30
"""Chosen. Outputs and fresh inputs one block may hold, on a CPU and on a GPU."""
REWRITE_BYTES, REWRITE_BYTES_GPU = 64 << 20, 8 << 30
"""Chosen. Inputs up to this size get new values every round, larger ones every fourth: to draw and
send them takes a CPU a tenth of a second, and a GPU, which does both itself, milliseconds."""
STABLE = 0.05
"""Warm-up ends when three block medians agree within this (EVAL_PITFALLS 55)."""
WARM_UP_S = 1.5
"""Chosen. Warm-up ends here even if it is not stable; the record says so."""
WARM_UP_BLOCKS = 12
LEAST_ROUNDS = 4
"""Chosen. Rounds measured whatever the time: fewer give no interval."""
DISTURBED = 1.5
"""Chosen. A round whose baseline median is this much above the quietest quarter's is disturbed
(EVAL_PITFALLS 86: identical code swings by 2x beside other load)."""
ODD_PER_BLOCK, ODD_PER_MATCH = 2, 12
"""Chosen. Answers that differ from the first to the same values are verified up to these numbers:
a kernel that sums in another order each time differs on every call, and rightly."""
IDLE_ROUNDS, IDLE_CALLS = 4, 8
"""Chosen. Launch-inclusive times are a second figure beside the device's: no interval is needed."""
FAST_SHARE = 1 / 12
"""Chosen. Of the time limit, for attempts: one second decides whom to look at again, and what a run
delivers is measured with all of it."""
EXTRA_ROUNDS = 6
"""Chosen. At most this many times the configured rounds are measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long to measure."""

    rounds: int
    samples_per_round: int
    min_time_us: float
    target_ci: float
    max_time_s: float
    verify_every: int
    """The verifier sees one timed call of each block of every n-th round."""
    beaten_below: float | None = None
    """Measuring also ends when every candidate's speed-up is below this for sure: none of them
    will be what the run delivers. None = never."""

    @staticmethod
    def from_config(config: EvaluationConfig, *, full: bool) -> Plan:
        """Fast: half the rounds and at most ``FAST_SHARE`` of the time."""
        return Plan(
            rounds=config.timing_rounds if full else max(LEAST_ROUNDS, config.timing_rounds // 2),
            samples_per_round=config.samples_per_round,
            min_time_us=1e3 * config.min_time_ms,
            target_ci=config.target_ci if full else 2 * config.target_ci,
            max_time_s=config.max_time_s if full else config.max_time_s * FAST_SHARE,
            verify_every=2,
        )


Verifier = Callable[[Side, int, int], None]
"""Called with a side, a call's number in its last block, and the slot it ran on."""
Refill = Callable[[int], Sequence[Any]]
"""New arguments for a slot; the caller remembers what it returned."""


class Match:
    """A timed comparison of several subjects on the same inputs."""

    def __init__(
        self,
        sides: Sequence[Side],
        plan: Plan,
        *,
        refill: Refill,
        verify: Verifier,
        rng: random.Random,
        bytes_per_call: int,
    ) -> None:
        """``sides[0]`` is the baseline. bytes_per_call: inputs plus outputs of one call."""
        self.sides = list(sides)
        self.plan = plan
        self._refill = refill
        self._verify = verify
        self._rng = rng
        self._bytes = max(1, bytes_per_call)
        on_host = self.sides[0].timer == HOST_TIMER
        self._most_bytes = MAX_BLOCK_BYTES if on_host else MAX_BLOCK_BYTES_GPU
        self._rewrite_bytes = REWRITE_BYTES if on_host else REWRITE_BYTES_GPU
        self._unseen: set[int] = set()
        self._odd_left = {side.name: ODD_PER_MATCH for side in sides}
        self.stopped = ""
        """Why measuring ended: ``target``, ``beaten``, ``time`` or ``rounds``."""

    def play(self) -> None:
        """Write inputs, warm up, and measure until the interval is narrow or the time is up."""
        for slot in range(SLOTS):
            self.write(slot)
        for side in self.sides:
            with attributed(side):
                self._warm_up(side)
        # The warm-up has shown every slot to every side.
        self._unseen.clear()
        started = time.perf_counter()
        limit = self.plan.rounds * EXTRA_ROUNDS
        for number in range(limit):
            self._round(number)
            late = time.perf_counter() - started > self.plan.max_time_s
            if number + 1 >= (LEAST_ROUNDS if late else self.plan.rounds):
                if self._narrow():
                    self.stopped = "target"
                    return
                if late:
                    break
            if number + 1 >= LEAST_ROUNDS and self._beaten():
                self.stopped = "beaten"
                return
        self.stopped = "rounds" if len(self.sides[0].rounds) == limit else "time"

    def play_idle(self) -> None:
        """Time calls that find the device idle, as a caller sees who waits for each answer.

        Only where the host's clock is not the one that counts.
        """
        if self.sides[0].timer == HOST_TIMER:
            return
        for number in range(IDLE_ROUNDS):
            slots = [self._rng.randrange(SLOTS) for _ in range(IDLE_CALLS)]
            for side in self.sides if number % 2 == 0 else self.sides[::-1]:
                calls = [dataclasses.replace(side.call(slot), idle=True) for slot in slots]
                with attributed(side):
                    block = side.subject.run(calls)
                side.idle.append(np.array([sample.host_us for sample in block.samples]))
                for sample in block.samples:
                    if sample.issue_us is not None:
                        side.issues.append(sample.issue_us)
                        side.idle_waits.append(sample.host_us - sample.issue_us)
                side.blocks.append(block)

    def quiet_rounds(self) -> list[int]:
        """Rounds in which the baseline was not slowed by other load on the machine.

        Judged by the baseline alone, so that no candidate can choose its best rounds. All rounds
        if fewer than ``LEAST_ROUNDS`` are quiet.
        """
        medians = np.array([np.median(values) for values in self.sides[0].rounds])
        quiet = np.flatnonzero(medians <= DISTURBED * np.quantile(medians, 0.25))
        chosen = quiet if len(quiet) >= LEAST_ROUNDS else np.arange(len(medians))
        return [int(number) for number in chosen]

    def speedup(self, side: Side) -> Estimate:
        """Baseline median over the side's median, with interval, over the quiet rounds."""
        used = self.quiet_rounds()
        return statistics.ratio_ci(
            [self.sides[0].rounds[n] for n in used], [side.rounds[n] for n in used]
        )

    def drift(self, side: Side) -> float:
        """p-value for a trend of the ratio over the quiet rounds."""
        base = self.sides[0].rounds
        ratios = [
            float(np.median(base[n]) / np.median(side.rounds[n])) for n in self.quiet_rounds()
        ]
        return statistics.drift_p_value(ratios)

    def write(self, slot: int) -> None:
        """New values for ``slot``, equal on all sides."""
        inputs = self._refill(slot)
        for side in self.sides:
            with attributed(side):
                side.subject.write_inputs(slot, inputs)
            side.answers.pop(slot, None)
        self._unseen.add(slot)

    def _warm_up(self, side: Side) -> None:
        """Blocks of random length until three medians agree (EVAL_PITFALLS 7, 8, 55)."""
        started, medians = time.perf_counter(), list[float]()
        quickest = float("inf")
        while True:
            count = self._rng.randint(1, 4)
            calls = [side.call(self._rng.randrange(SLOTS)) for _ in range(count)]
            block = side.subject.run(calls)
            self._look(side, calls, block)
            values = [side.time_us(sample) for sample in block.samples]
            quickest = min(quickest, *values)
            side.slowest_warm_us = max(side.slowest_warm_us, *values)
            medians.append(float(np.median(values)))
            recent = medians[-3:]
            if len(recent) == 3 and max(recent) <= (1 + STABLE) * min(recent):
                break
            late = time.perf_counter() - started > WARM_UP_S or len(medians) >= WARM_UP_BLOCKS
            if len(medians) >= 3 and late:
                side.stable = False
                break
        side.warm_us = max(quickest, 0.1)

    def _round(self, number: int) -> None:
        if number and (self._bytes <= self._rewrite_bytes or number % 4 == 0):
            lone, timed = self._rng.sample(range(SLOTS), 2)
            self._lone_call(lone)
            self.write(timed)
        order = self.sides if number % 2 == 0 else self.sides[::-1]
        unseen, self._unseen = self._unseen, set()
        calls = self._compose()
        for side in order:
            settle(self.sides)
            with self._others_resting(side), attributed(side):
                block = side.subject.run(calls)
            values = np.array([side.time_us(s) for s in block.samples])
            side.rounds.append(values)
            side.blocks.append(block)
            side.beyond_events += [
                sample.host_us - sample.device_us
                for sample in block.samples
                if sample.device_us is not None
            ]
            _sort_by_novelty(side, calls, values, set(unseen))
            with attributed(side):
                self._look(side, calls, block, always=number % self.plan.verify_every == 0)

    @contextmanager
    def _others_resting(self, measured: Side) -> Iterator[None]:
        """Note the CPU time that candidates take while another side is measured."""
        others = [side for side in self.sides[1:] if side is not measured]
        before = [side.subject.cpu_us() for side in others]
        started = time.perf_counter()
        yield
        wall_us = 1e6 * (time.perf_counter() - started)
        for side, earlier in zip(others, before, strict=True):
            now = side.subject.cpu_us()
            known = None if now is None or earlier is None else max(0.0, now - earlier)
            total = side.rest_cpu_us
            side.rest_cpu_us = None if known is None or total is None else total + known
            side.rest_wall_us += wall_us

    def _lone_call(self, slot: int) -> None:
        """New values, then a block of one: the candidate cannot prepare the next answer."""
        self.write(slot)
        self._unseen.discard(slot)
        for side in self.sides:
            with attributed(side):
                block = side.subject.run([side.call(slot)])
            side.lone.append(side.time_us(block.samples[0]))
            side.blocks.append(block)
            with attributed(side):
                self._look(side, [side.call(slot)], block)

    def _look(
        self, side: Side, calls: Sequence[Call], block: Block, *, always: bool = False
    ) -> None:
        """Verify answers that differ from an earlier one to the same values (EVAL_PITFALLS 7, 44);
        always: or else one at random."""
        odd = side.odd_answers(calls, block)
        picks = self._rng.sample(odd, min(len(odd), ODD_PER_BLOCK, self._odd_left[side.name]))
        self._odd_left[side.name] -= len(picks)
        if always and not picks:
            picks = [self._rng.randrange(len(calls))]
        for pick in picks:
            self._verify(side, pick, calls[pick].slot)

    def _compose(self) -> list[Call]:
        return [
            self.sides[0].call(self._rng.randrange(SLOTS), fresh=self._rng.random() < FRESH_SHARE)
            for _ in range(self._count())
        ]

    def _count(self) -> int:
        """Calls of one block, equal for all sides: the first calls after a switch of processes
        are slower, and a side with shorter blocks would look slower.

        Enough for the quickest side's least time, within memory and the time limit.
        """
        typical = [side.typical_us() for side in self.sides]
        quickest, together = min(typical), sum(typical)
        wanted = self.plan.min_time_us / (self.plan.rounds * quickest)
        budget = 1e6 * self.plan.max_time_s / (self.plan.rounds * together)
        most = min(self.most_calls, int(budget))
        return max(1, min(max(int(wanted), self.plan.samples_per_round), most))

    @property
    def most_calls(self) -> int:
        """Calls that one block may have: what they return is held until its end."""
        return max(1, min(MAX_CALLS, self._most_bytes // self._bytes))

    def _beaten(self) -> bool:
        """Do the intervals of all speed-ups end below what is already known to be reached?"""
        bar = self.plan.beaten_below
        return bar is not None and all(self.speedup(s).high < bar for s in self.sides[1:])

    def _narrow(self) -> bool:
        used = self.quiet_rounds()
        return all(
            statistics.median_ci([side.rounds[n] for n in used], resamples=300).half_width
            <= self.plan.target_ci
            for side in self.sides
            if side.decides
        )


def _sort_by_novelty(side: Side, calls: Sequence[Call], values: Samples, unseen: set[int]) -> None:
    for call, value in zip(calls, values, strict=True):
        if call.slot in unseen:
            unseen.discard(call.slot)
            side.fresh_values.append(float(value))
        else:
            side.seen_values.append(float(value))
