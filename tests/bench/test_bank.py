"""A bank measures a source once, keeps raw outcomes, and tells changed problems from known ones."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest
from tests.loop.simulated import (
    PROBLEM,
    SOURCE,
    SimulatedReferee,
    SimulatedWriter,
    accepted,
    failure,
    judged,
    prepare,
    profile,
)

from kernelpro.bench.ablation import arm_config
from kernelpro.bench.bank import Bank, Measured
from kernelpro.bench.laboratory import Laboratory, single_core
from kernelpro.bench.replay import bank_trial, resampled
from kernelpro.errors import StoreError
from kernelpro.loop.base import Profiler, Referee
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.config import RunConfig
from kernelpro.schema.event import RunStarted
from kernelpro.schema.hardware import Peaks
from kernelpro.schema.outcome import Outcome, Stage, Status
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.schema.usage import Usage
from kernelpro.text import content_hash

NOISY = (90.0, 100.0, 110.0, 100.0)


def noisy(source: str) -> Outcome:
    """As :func:`judged`, timed in four rounds that differ by a tenth."""
    outcome = judged(source)
    if outcome.latency is None:
        return outcome
    eager = dataclasses.replace(outcome.latency, median_us=100.0, rounds=NOISY)
    ours = dataclasses.replace(outcome.latency, rounds=(100.0, 100.0, 120.0, 100.0))
    return dataclasses.replace(outcome, latency=ours, baselines={"eager": eager})


class Lab:
    """A laboratory on simulated judgements."""

    def __init__(self, folder: Path) -> None:
        self.referee = SimulatedReferee(noisy)
        self.bank = Bank(folder / "bank.sqlite")

    def __enter__(self) -> Laboratory:
        def bench(started: RunStarted, cache_root: Path) -> tuple[Referee, Profiler]:
            return self.referee, profile

        self.laboratory = Laboratory(
            self.bank, device="cpu", cache_root=Path(), prepare=prepare, bench=bench
        )
        return self.laboratory

    def __exit__(self, *_: object) -> None:
        self.laboratory.close()
        self.bank.close()


def test_what_was_put_in_is_found_again(tmp_path: Path) -> None:
    source = SOURCE.format(note="one")
    path = tmp_path / "bank.sqlite"
    bank = Bank(path)
    assert bank.get("op", source) is None
    bank.add("op", source, accepted(2.0, source), None)
    seen = profile(None, None)  # type: ignore[arg-type]
    bank.add("op", source, accepted(4.5, source), seen)
    bank.add("op", "other", failure(Status.BUILD_ERROR, Stage.BUILD), None)
    bank.close()

    again = Bank(path)
    found = again.get("op", source)
    assert found == Measured((accepted(2.0, source), accepted(4.5, source)), seen)
    assert found.speedup == pytest.approx(3.0), "the geometric mean of both sessions"
    assert again.get("elsewhere", source) is None
    failed = again.get("op", "other")
    assert failed is not None and failed.speedup is None
    assert len(again) == 2
    assert list(again.sources("op", measured_less_than=2)) == ["other"]
    assert sorted(again.sources("op")) == sorted(["other", source])


def test_a_changed_problem_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    with Lab(tmp_path) as laboratory:
        started = laboratory.started(PROBLEM)
        assert laboratory.bank.started(PROBLEM.name, PROBLEM.source_hash) == started
        assert laboratory.bank.problems() == (PROBLEM.name,)
        with pytest.raises(StoreError, match="changed"):
            laboratory.started(dataclasses.replace(PROBLEM, source_hash="sha256:1"))


def test_another_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a bank\n" * 200)
    with pytest.raises(StoreError, match=r"notes\.txt is not a bank"):
        Bank(tmp_path / "notes.txt")


def test_each_source_is_measured_once_whoever_asks(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    with lab as laboratory:
        run = bank_trial(lambda name: PROBLEM, laboratory, write=lambda _: SimulatedWriter())
        trials = [
            run(arm, arm_config(RunConfig(device="cpu"), arm, 1, 8), "op", 1)
            for arm in ("mcts", "greedy", "mcts")
        ]
        assert len(lab.referee.evaluated) == len(set(lab.referee.evaluated))
        assert laboratory.measured == len(lab.referee.evaluated)
    assert trials[0] == trials[2], "the same arm and seed meets the same noise"
    assert all(t.budget == len(t.best_so_far) == 8 for t in trials)
    assert all(t.stopped == "budget_evaluations" for t in trials)


def test_finals_are_the_banks_estimates_not_what_the_run_heard(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    with lab as laboratory:
        run = bank_trial(lambda name: PROBLEM, laboratory, write=lambda _: SimulatedWriter())
        trial = run("greedy", arm_config(RunConfig(device="cpu"), "greedy", 3, 12), "op", 3)
        known = {1.0} | {
            found.speedup
            for source in lab.bank.sources(PROBLEM.name)
            if (found := lab.bank.get(PROBLEM.name, source)) and found.speedup
        }
    assert {trial.final, *trial.best_so_far} <= known


def test_resampling_moves_the_speedup_within_its_rounds_and_nothing_else() -> None:
    source = next(s for n in range(20) if noisy(s := SOURCE.format(note=n)).ok)
    outcome = noisy(source)
    assert outcome.speedup is not None
    measured = Measured((outcome,), None)
    factors = set()
    for seed in range(60):
        heard = resampled(measured, random.Random(seed))
        assert heard.speedup is not None and heard.latency is not None
        assert heard.speedup_ci95 is not None and outcome.speedup_ci95 is not None
        factor = heard.speedup / outcome.speedup
        assert heard.speedup_ci95[0] / outcome.speedup_ci95[0] == pytest.approx(factor)
        assert 90 / 120 <= factor <= 110 / 100
        assert heard.status is outcome.status
        factors.add(round(factor, 6))
    assert len(factors) > 3
    assert resampled(measured, random.Random(7)) == resampled(measured, random.Random(7))
    failed = failure(Status.TIMEOUT, Stage.RUN)
    assert resampled(Measured((failed,), None), random.Random(1)) == failed


def test_one_core_has_the_peaks_of_one_thread() -> None:
    started = prepare(PROBLEM, RunConfig(device="cpu"), "r", Path())
    peaks = Peaks(
        copy_gb_s=30.0, flops={"float32": 2e11, "float64": 1e11}, source="measured",
        copy_gb_s_by_threads={"1": 18.0, "2": 30.0}, flops_by_threads={"1": 1.1e11, "2": 2e11},
        cache_gb_s=200.0,
    )  # fmt: skip
    alone = single_core(dataclasses.replace(started, peaks=peaks))
    assert (alone.device.units, alone.peaks.copy_gb_s) == (1, 18.0)
    assert alone.peaks.flops == {"float32": 1.1e11, "float64": 0.5e11}
    assert alone.peaks.cache_gb_s == 100.0


def test_in_a_closed_world_nothing_is_measured_and_only_known_sources_are_proposed(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path)
    with lab as laboratory:
        facts = laboratory.started(PROBLEM)
        for n in range(9):
            laboratory.measure(facts, SOURCE.format(note=f"{n}"))
        before = laboratory.measured
        run = bank_trial(lambda _: PROBLEM, laboratory, write=lambda _: Counter(), closed=True)
        trial = run("best-of-n", arm_config(RunConfig(device="cpu"), "best-of-n", 0, 8), "op", 0)
        assert laboratory.measured == before
    assert len(trial.best_so_far) == 4, "x, y and z are passed over"
    assert trial.stopped == "exhausted"


class Counter:
    """Proposes notes in a fixed order, some of which the bank does not hold."""

    def propose(self, request: ProposalRequest) -> Proposal | None:
        for note in ("0", "2", "x", "4", "y", "6", "z"):
            source = SOURCE.format(note=note)
            if content_hash(source) not in request.seen_hashes:
                return Proposal(source=source, mode=request.ask.mode, title=note)
        return None

    def usage(self) -> tuple[Usage, ...]:
        return ()
