"""The loop end to end on simulated evaluations: budgets, repeats, ends, and what is recorded."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from kernelpro.errors import BudgetExceeded, MachineError, ProviderError, UserError
from kernelpro.loop.run import read_result, read_state, resume_run, start_run
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.event import Asked, Event, NodeFinished, Remeasured, RunStarted, Stopped
from kernelpro.schema.outcome import Outcome, Stage, Status
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.schema.result import RunResult
from kernelpro.schema.usage import Usage
from kernelpro.store.sqlite import RunStore
from kernelpro.text import content_hash

from .simulated import (
    PROBLEM,
    SOURCE,
    SimulatedReferee,
    SimulatedWriter,
    accepted,
    assembler,
    failure,
    prepare,
)


class ScriptedWriter:
    """Answers with the given notes, one source each; None = nothing to propose."""

    def __init__(self, *notes: str | None, cost_usd: float = 0.0) -> None:
        self._notes = list(notes)
        self._cost_usd = cost_usd
        self.requests: list[ProposalRequest] = []

    def propose(self, request: ProposalRequest) -> Proposal | None:
        self.requests.append(request)
        note = self._notes.pop(0) if self._notes else None
        if note is None:
            return None
        return Proposal(source=SOURCE.format(note=note), mode=request.ask.mode, title=note)

    def usage(self) -> tuple[Usage, ...]:
        return (Usage(role="writer", cost_usd=self._cost_usd, input_tokens=100, requests=1),)


def speeds(**by_note: float) -> Any:
    """A judge: the speed-up of each note; 0 = wrong result."""

    def judge(source: str) -> Outcome:
        speedup = next(s for note, s in by_note.items() if f"# {note}\n" in source)
        if speedup == 0:
            return failure(Status.WRONG_RESULT, Stage.VERIFY, source)
        return accepted(speedup, source)

    return judge


def optimise(tmp_path: Path, *, listeners: Any = (), **options: Any) -> RunResult:
    parts = {k: options.pop(k) for k in ("judge", "writer", "referee") if k in options}
    options.setdefault("budget", Budget(evaluations=8))
    return start_run(
        PROBLEM, RunConfig(device="cpu", **options), runs_root=tmp_path, cache_root=tmp_path,
        listeners=listeners, prepare=prepare, assemble=assembler(**parts),
    )  # fmt: skip


def events_of(result: RunResult) -> list[Event]:
    with RunStore.open(result.folder) as store:
        assert store.verify() == []
        return list(store.events())


def test_a_whole_run(tmp_path: Path) -> None:
    heard: list[Event] = []
    referee = SimulatedReferee()
    result = optimise(tmp_path, referee=referee, listeners=(heard.append,), finalists=2)
    events = events_of(result)
    assert heard == events
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], Stopped)
    assert result.stop_reason == "budget_evaluations"
    assert result.evaluations == len(referee.evaluated) == 8
    assert result.nodes == sum(isinstance(e, NodeFinished) and e.candidate is not None
                               for e in events)  # fmt: skip
    assert sum(result.statuses.values()) == result.nodes
    assert [len(batch) for batch in referee.remeasured] == [2]
    assert len(result.finalists) == 2
    assert result.best is not None
    assert result.outcome is not None
    assert result.speedup == max(f.outcome.speedup or 0 for f in result.finalists)
    assert referee.closed
    assert read_result(result.folder) == result


def test_a_repeat_takes_over_the_outcome_and_is_not_charged(tmp_path: Path) -> None:
    referee = SimulatedReferee(speeds(a=1.5, b=2.0))
    writer = ScriptedWriter("a", "a", "b", "a")
    result = optimise(tmp_path, referee=referee, writer=writer, budget=Budget(evaluations=2))
    nodes = [e for e in events_of(result) if isinstance(e, NodeFinished)]
    assert [n.duplicate_of for n in nodes] == [None, "n0001", None]
    assert nodes[1].outcome == nodes[0].outcome
    assert nodes[1].guidance == nodes[0].guidance
    assert len(referee.evaluated) == 2
    assert (result.evaluations, result.duplicates, result.nodes) == (2, 1, 3)


def test_a_writer_that_only_repeats_itself_ends_the_run(tmp_path: Path) -> None:
    writer = ScriptedWriter(*["a"] * 100)
    result = optimise(tmp_path, writer=writer, judge=speeds(a=1.5))
    assert result.stop_reason == "exhausted"
    assert result.evaluations == 1


def test_a_silent_writer_ends_the_run_without_a_winner(tmp_path: Path) -> None:
    result = optimise(tmp_path, writer=ScriptedWriter())
    assert result.stop_reason == "exhausted"
    assert result.best is None
    assert result.keep_eager
    assert result.nodes == 0


def test_inadmissible_sources_are_rejected_without_an_evaluation(tmp_path: Path) -> None:
    class BadWriter(ScriptedWriter):
        def propose(self, request: ProposalRequest) -> Proposal | None:
            proposal = super().propose(request)
            assert proposal is not None
            return dataclasses.replace(proposal, source=proposal.title)

    referee = SimulatedReferee()
    writer = BadWriter("def (", "x = 1", "bad \udcff")
    result = optimise(tmp_path, writer=writer, referee=referee, budget=Budget(evaluations=3))
    assert referee.evaluated == []
    assert result.statuses == {"rejected": 3}
    nodes = [e for e in events_of(result) if isinstance(e, NodeFinished)]
    assert all(n.outcome and n.outcome.message and n.guidance for n in nodes)


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(evaluations=None, target_speedup=1.9), "target_met"),
        (Budget(evaluations=2), "budget_evaluations"),
        (Budget(evaluations=None, stagnation=2), "stagnation"),
        (Budget(evaluations=None, cost_usd=1.0), "budget_cost"),
        (Budget(evaluations=None, tokens=250), "budget_cost"),
        (Budget(evaluations=None, minutes=1e-9), "budget_time"),
    ],
)
def test_stop_reasons(tmp_path: Path, budget: Budget, reason: str) -> None:
    judge = speeds(a=1.5, b=1.2, c=1.1, d=2.0, e=1.0)
    writer = ScriptedWriter(*"abcde", cost_usd=0.4)
    result = optimise(tmp_path, judge=judge, writer=writer, budget=budget)
    assert result.stop_reason == reason
    assert result.detail


def test_a_writer_that_runs_out_of_money_still_gets_its_finalists(tmp_path: Path) -> None:
    class PoorWriter(ScriptedWriter):
        def propose(self, request: ProposalRequest) -> Proposal | None:
            if len(self.requests) == 2:
                raise BudgetExceeded("the account is empty")
            return super().propose(request)

    result = optimise(tmp_path, writer=PoorWriter("a", "b"), judge=speeds(a=1.5, b=2.0))
    assert (result.stop_reason, result.detail) == ("budget_cost", "the account is empty")
    assert result.speedup == 2.0


def test_a_winner_must_beat_eager_beyond_the_noise(tmp_path: Path) -> None:
    writer = ScriptedWriter("a", "b")
    result = optimise(tmp_path, writer=writer, judge=speeds(a=1.005, b=0.8))
    assert result.keep_eager
    assert result.best is None
    assert result.speedup is None
    assert [f.node_id for f in result.finalists] == ["n0001", "n0002"]


def test_the_winner_is_what_survives_the_second_measurement(tmp_path: Path) -> None:
    class Doubtful(SimulatedReferee):
        def remeasure(self, sources: list[str]) -> list[Outcome]:
            self.remeasured.append(sources)
            return [
                failure(Status.WRONG_RESULT, Stage.VERIFY, s)
                if "# fluke" in s
                else accepted(1.4, s)
                for s in sources
            ]

    writer = ScriptedWriter("fluke", "flukey", "solid")
    referee = Doubtful(speeds(fluke=9.0, flukey=8.0, solid=1.5))
    result = optimise(tmp_path, writer=writer, referee=referee, finalists=2)
    assert [len(batch) for batch in referee.remeasured] == [2, 1], "none survived: the next ones"
    assert result.best is not None
    assert result.best.id == "n0003"
    assert result.speedup == 1.4
    kinds = [e.node_id for e in events_of(result) if isinstance(e, Remeasured)]
    assert kinds == ["n0001", "n0002", "n0003"]


def test_no_finalists_means_the_search_decides(tmp_path: Path) -> None:
    writer, judge = ScriptedWriter("a", "b"), speeds(a=2.0, b=1.5)
    referee = SimulatedReferee(judge)
    result = optimise(tmp_path, writer=writer, referee=referee, finalists=0)
    assert referee.remeasured == []
    assert result.speedup == 2.0


def test_ctrl_c_ends_cleanly_and_can_be_resumed(tmp_path: Path) -> None:
    class Impatient(SimulatedReferee):
        def evaluate(self, source: str, **options: Any) -> Outcome:
            if len(self.evaluated) == 3:
                os.kill(os.getpid(), signal.SIGINT)
            return super().evaluate(source, **options)

    handler = signal.getsignal(signal.SIGINT)
    result = optimise(tmp_path, referee=Impatient(), seed=5)
    assert signal.getsignal(signal.SIGINT) is handler
    assert result.stop_reason == "interrupted"
    assert result.evaluations == 3
    assert len(events_of(result)) > 1
    resumed = resume_run(
        result.folder, cache_root=tmp_path, assemble=assembler(), same_device=False
    )
    whole = optimise(tmp_path / "whole", seed=5)
    same = {"run_id": "", "folder": "", "elapsed_s": 0.0, "usage": ()}
    assert dataclasses.replace(resumed, **same) == dataclasses.replace(whole, **same)


def test_an_interrupt_never_tears_a_record(tmp_path: Path) -> None:
    def interrupt_while_recording(event: Event) -> None:
        if isinstance(event, NodeFinished):
            os.kill(os.getpid(), signal.SIGTERM)

    result = optimise(tmp_path, listeners=(interrupt_while_recording,))
    assert result.stop_reason == "interrupted"
    assert result.nodes == 1
    events_of(result)


@pytest.mark.parametrize("error", [MachineError("the GPU fell off"), ProviderError("overloaded")])
def test_trouble_is_recorded_raised_and_resumable(tmp_path: Path, error: Exception) -> None:
    class Breaking(SimulatedReferee):
        def evaluate(self, source: str, **options: Any) -> Outcome:
            if len(self.evaluated) == 2:
                raise error
            return super().evaluate(source, **options)

    referee = Breaking()
    with pytest.raises(type(error), match=str(error)):
        optimise(tmp_path, referee=referee)
    assert referee.closed
    (folder,) = (p for p in tmp_path.iterdir() if p.is_dir())
    stopped = read_state(folder).stopped
    assert stopped is not None
    assert (stopped.reason, stopped.detail) == ("error", str(error))
    result = resume_run(folder, cache_root=tmp_path, assemble=assembler(), same_device=False)
    assert result.stop_reason == "budget_evaluations"


def test_a_finished_run_is_left_alone_unless_it_gets_more_budget(tmp_path: Path) -> None:
    result = optimise(tmp_path)
    count = len(events_of(result))
    again = resume_run(result.folder, cache_root=tmp_path, same_device=False)
    assert again == result
    assert len(events_of(result)) == count
    more = resume_run(
        result.folder, cache_root=tmp_path, budget=Budget(evaluations=12), assemble=assembler(),
        same_device=False,
    )  # fmt: skip
    assert more.evaluations == 12
    assert more.elapsed_s >= result.elapsed_s
    with pytest.raises(UserError, match="greater than 0"):
        resume_run(result.folder, cache_root=tmp_path, budget=Budget(evaluations=0))


def test_the_writer_sees_parent_siblings_best_memory_and_hashes(tmp_path: Path) -> None:
    writer = ScriptedWriter("a", "b", "c", "d")
    judge = speeds(a=1.5, b=0, c=2.0, d=1.0)
    result = optimise(
        tmp_path, writer=writer, judge=judge, search="best-of-n", budget=Budget(evaluations=4)
    )
    last = writer.requests[-1]
    assert last.parent is None
    assert [a.candidate.id for a in last.siblings] == ["n0001", "n0002", "n0003"]
    assert last.best is not None
    assert last.best.candidate.id == "n0003"
    assert len(last.seen_hashes) == 3
    facts = [e.text for e in last.memory if e.category == "fact"]
    assert len(facts) == 3
    assert "wrong_result" in facts[1]
    assert len({r.seed for r in writer.requests}) == 4
    assert result.device == "cpu"


def test_without_memory_none_is_kept_or_shown(tmp_path: Path) -> None:
    writer = ScriptedWriter("a", "b")
    result = optimise(tmp_path, writer=writer, judge=speeds(a=1.5, b=0), memory=False)
    assert all(r.memory == () for r in writer.requests)
    assert all(e.memory == () for e in events_of(result) if isinstance(e, NodeFinished))


def test_the_arm_none_profiles_nothing(tmp_path: Path) -> None:
    for arm, profiled in (("none", False), ("raw", True), ("full", True)):
        writer = ScriptedWriter("a")
        result = optimise(tmp_path / arm, writer=writer, judge=speeds(a=1.5), arm=arm)
        nodes = [e for e in events_of(result) if isinstance(e, NodeFinished) and e.candidate]
        assert [n.profile is not None for n in nodes] == [profiled]
        assert all(n.guidance is not None and n.guidance.arm == arm for n in nodes)


def test_scouts_of_one_round_do_not_waste_an_evaluation_on_the_same_idea(tmp_path: Path) -> None:
    class Obvious(SimulatedWriter):
        """Always proposes the first idea that the request does not list as tried."""

        def propose(self, request: ProposalRequest) -> Proposal | None:
            for number in range(100):
                source = SOURCE.format(note=f"idea {number}")
                if content_hash(source) not in request.seen_hashes:
                    return Proposal(source=source, mode=request.ask.mode, title=f"{number}")
            return None

    result = optimise(tmp_path, writer=Obvious(), parallel=4, budget=Budget(evaluations=8))
    assert (result.evaluations, result.duplicates) == (8, 0)
    rounds = [len(e.asks) for e in events_of(result) if isinstance(e, Asked)]
    assert rounds == [4, 4]


def test_a_round_is_never_larger_than_the_evaluations_left(tmp_path: Path) -> None:
    writer = SimulatedWriter(repeats=0, silent=0)
    result = optimise(tmp_path, writer=writer, parallel=4, budget=Budget(evaluations=6))
    assert result.evaluations == 6
