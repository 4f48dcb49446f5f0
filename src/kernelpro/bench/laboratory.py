"""Measures for real what a bank of evaluations lacks, and puts it in."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

from kernelpro.bench.bank import Bank, Measured
from kernelpro.loop.assemble import Prepare, prepare, profiler_of
from kernelpro.loop.base import Profiler, Referee
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.config import EvaluationConfig, RunConfig
from kernelpro.schema.event import RunStarted
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.problem import Problem
from kernelpro.text import content_hash

BANK_EVALUATION = EvaluationConfig(
    checks="fast", compile_baseline=False, min_time_ms=25.0, target_ci=0.02, max_time_s=4.0
)
"""How the bank measures on a GPU: as attempts are measured in a run, only shorter."""
BANK_EVALUATION_CPU = dataclasses.replace(BANK_EVALUATION, threads=1)
"""One thread on both sides: with several, a busy machine's timings tell of its other work."""

Heard = Callable[[str, Outcome], None]
"""Told the problem and the outcome of every new measurement."""
Bench = Callable[[RunStarted, Path], tuple[Referee, Profiler]]
"""Opens the referee of a problem, and its profiler, with a cache folder."""


def real_bench(started: RunStarted, cache_root: Path) -> tuple[Referee, Profiler]:
    """The referee of the loop."""
    from kernelpro.evaluation.referee import Referee as RealReferee

    referee = RealReferee(
        started.problem, started.device, started.config.evaluation, cache_root=cache_root,
        peaks=started.peaks,
    )  # fmt: skip
    return referee, profiler_of(started, referee)


class Laboratory:
    """Keeps the referee of one problem warm at a time; a context manager."""

    def __init__(
        self, bank: Bank, *, device: str, cache_root: Path, heard: Heard | None = None,
        prepare: Prepare = prepare, bench: Bench = real_bench,
    ) -> None:  # fmt: skip
        self.bank = bank
        self.measured = 0
        """Evaluations measured by this laboratory so far."""
        self._device = device
        self._cache_root = cache_root
        self._heard = heard
        self._prepare = prepare
        self._bench = bench
        self._open: tuple[str, Referee, Profiler] | None = None

    def __enter__(self) -> Laboratory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the referee's processes."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def started(self, problem: Problem) -> RunStarted:
        """Facts that runs on ``problem`` start from: graphs, device, peaks; prepared once."""
        found = self.bank.started(problem.name, problem.source_hash)
        if found is None:
            on_cpu = self._device == "cpu"
            evaluation = BANK_EVALUATION_CPU if on_cpu else BANK_EVALUATION
            config = RunConfig(device=self._device, evaluation=evaluation)
            found = self._prepare(problem, config, "bank", self._cache_root)
            found = single_core(found) if on_cpu else found
            self.bank.add_problem(found)
        return found

    def evaluate(self, started: RunStarted, source: str) -> Measured:
        """From the bank, else measured now."""
        return self.bank.get(started.problem.name, source) or self.measure(started, source)

    def measure(self, started: RunStarted, source: str) -> Measured:
        """Measure ``source`` (again) and put it into the bank."""
        referee, profiler = self._bench_of(started)
        outcome = referee.evaluate(source, checks=started.config.evaluation.checks)
        known = self.bank.get(started.problem.name, source)
        profile = None if known is None else known.profile
        if outcome.ok and profile is None:
            profile = profiler(_bare_candidate(source), outcome)
        self.measured += 1
        if self._heard is not None:
            self._heard(started.problem.name, outcome)
        return self.bank.add(started.problem.name, source, outcome, profile)

    def _bench_of(self, started: RunStarted) -> tuple[Referee, Profiler]:
        if self._open is None or self._open[0] != started.problem.name:
            self.close()
            self._open = (started.problem.name, *self._bench(started, self._cache_root))
        return self._open[1:]


@contextlib.contextmanager
def opened_bank(
    path: Path, *, device: str, cache_root: Path, heard: Heard | None = None
) -> Iterator[Laboratory]:
    """A laboratory on the bank at ``path``."""
    with (
        contextlib.closing(Bank(path)) as bank,
        Laboratory(bank, device=device, cache_root=cache_root, heard=heard) as laboratory,
    ):
        yield laboratory


def single_core(started: RunStarted) -> RunStarted:
    """The device and its peaks as one thread meets them, so that advice does not ask for more."""
    device, peaks = started.device, started.peaks
    flops = {kind: value / device.units for kind, value in peaks.flops.items()}
    if "float32" in flops:
        flops["float32"] = peaks.flops_by_threads.get("1", flops["float32"])
    peaks = dataclasses.replace(
        peaks,
        flops=flops,
        copy_gb_s=peaks.copy_gb_s_by_threads.get("1", peaks.copy_gb_s),
        cache_gb_s=peaks.cache_gb_s / device.units if peaks.cache_gb_s else None,
    )
    return dataclasses.replace(started, device=dataclasses.replace(device, units=1), peaks=peaks)


def _bare_candidate(source: str) -> Candidate:
    proposal = Proposal(source=source, mode="initial", title="from the bank")
    return Candidate(id="bank", parent_id=None, source_hash=content_hash(source), proposal=proposal)
