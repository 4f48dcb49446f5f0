"""Whatever comes first, the search is told in the order it asked in."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from kernelpro.errors import MachineError, ProviderError
from kernelpro.loop.assemble import Assemble, strategy_of
from kernelpro.loop.base import Collaborators, Examined
from kernelpro.loop.run import create_run, opened, read_state, resume_run
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.event import Asked, NodeFinished, RunStarted
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.schema.result import RunResult
from kernelpro.store.sqlite import RunStore

from .simulated import PROBLEM, SOURCE, SimulatedWriter, accepted, judged, prepare, story


class Scrambled:
    """Examines side by side; answers come in an order drawn from ``seed``, most often not in the
    order of asking."""

    overlaps = True

    def __init__(self, seed: int, judge: Callable[[str], Outcome] = judged) -> None:
        self._draw = random.Random(seed)
        self._judge = judge
        self._lock = threading.Lock()
        self._open: list[tuple[Candidate, Future[Examined]]] = []
        self.arrived: list[str] = []
        self.most_open = 0
        self._closed = threading.Event()
        threading.Thread(target=self._answer, daemon=True).start()

    def examine(self, candidate: Candidate) -> Future[Examined]:
        future: Future[Examined] = Future()
        with self._lock:
            self._open.append((candidate, future))
            self.most_open = max(self.most_open, len(self._open))
        return future

    def remeasure(self, sources: list[str]) -> list[Outcome]:
        return [self._judge(source) for source in sources]

    def close(self) -> None:
        self._closed.set()

    def _answer(self) -> None:
        patience = 0
        while not self._closed.wait(self._draw.uniform(0.0002, 0.003)):
            with self._lock:
                # Two at least, so that there is a choice; the last of a run comes alone.
                patience += 1
                if not self._open or (len(self._open) < 2 and patience < 50):
                    continue
                patience = 0
                candidate, future = self._open.pop(self._draw.randrange(len(self._open)))
            self.arrived.append(candidate.id)
            try:
                outcome = self._judge(candidate.proposal.source)
            except MachineError as error:
                future.set_exception(error)
                continue
            future.set_result(Examined(outcome, None))


def assembler(examiner: Any, writer: Any = None) -> Assemble:
    def assemble(started: RunStarted, cache_root: Path) -> Collaborators:
        return Collaborators(
            strategy=strategy_of(started.config), writer=writer or SimulatedWriter(),
            examiner=examiner,
        )  # fmt: skip

    return assemble


def run(
    root: Path, examiner: Any, *, writer: Any = None, listeners: Any = (), **options: Any
) -> RunResult:
    options = {"parallel": 4, "budget": Budget(evaluations=24), **options}
    folder = create_run(
        PROBLEM, RunConfig(device="cpu", **options), runs_root=root, cache_root=root,
        prepare=prepare,
    )  # fmt: skip
    with opened(
        folder, cache_root=root, assemble=assembler(examiner, writer), listeners=listeners
    ) as loop:
        return loop.run()


@pytest.mark.parametrize("search", ["mcts", "greedy", "beam", "best-of-n"])
def test_results_do_not_depend_on_the_order_of_arrival(tmp_path: Path, search: str) -> None:
    tales, orders = [], []
    for seed in range(3):
        examiner = Scrambled(seed)
        result = run(tmp_path / str(seed), examiner, search=search)
        tales.append(story(result.folder))
        orders.append(examiner.arrived)
        assert result.evaluations == 24
        assert examiner.most_open > 1
    assert tales[0] == tales[1] == tales[2]
    assert any(order != sorted(order) for order in orders), "they did arrive out of order"


def test_the_next_request_is_made_as_soon_as_one_is_answered(tmp_path: Path) -> None:
    result = run(tmp_path, Scrambled(0), writer=SimulatedWriter(repeats=0, silent=0))
    with RunStore.open(result.folder) as store:
        asked = [len(e.asks) for e in store.events() if isinstance(e, Asked)]
    assert asked == [4] + [1] * 20


def test_the_writer_works_while_candidates_are_timed(tmp_path: Path) -> None:
    """The examiner answers only once the writer has been asked for more than it was given."""
    seen = threading.Event()

    class Writer(SimulatedWriter):
        def propose(self, request: ProposalRequest) -> Proposal | None:
            if request.ask.id == 3:
                seen.set()
            return super().propose(request)

    class Waiting(Scrambled):
        def examine(self, candidate: Candidate) -> Future[Examined]:
            future: Future[Examined] = Future()

            def answer() -> None:
                assert seen.wait(30)
                future.set_result(Examined(accepted(1.5, candidate.proposal.source), None))

            threading.Thread(target=answer, daemon=True).start()
            return future

    result = run(
        tmp_path, Waiting(0), writer=Writer(repeats=0, silent=0), parallel=3,
        budget=Budget(evaluations=5),
    )  # fmt: skip
    assert result.evaluations == 5


def test_equal_ideas_in_flight_are_evaluated_once(tmp_path: Path) -> None:
    class Stubborn(SimulatedWriter):
        def propose(self, request: ProposalRequest) -> Proposal | None:
            return Proposal(
                source=SOURCE.format(note=request.ask.id // 4), mode=request.ask.mode,
                title="again",
            )  # fmt: skip

    examiner = Scrambled(1, judge=lambda source: accepted(1.5, source))
    result = run(tmp_path, examiner, writer=Stubborn(), budget=Budget(evaluations=5))
    state = read_state(result.folder)
    assert len(examiner.arrived) == len(set(examiner.arrived)) == result.evaluations == 5
    assert result.duplicates > 5
    assert len(state.archive) == result.evaluations + result.duplicates


def test_a_run_that_ends_in_the_middle_of_everything_goes_on_the_same(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", Scrambled(5))
    for after in (1, 9, 20):
        root = tmp_path / str(after)
        heard = 0

        def give_up(event: object, after: int = after) -> None:
            nonlocal heard
            heard += isinstance(event, NodeFinished)
            if heard == after and isinstance(event, NodeFinished):
                raise KeyboardInterrupt

        stopped = run(root, Scrambled(after), listeners=(give_up,))
        assert stopped.stop_reason == "interrupted"
        result = resume_run(
            stopped.folder, cache_root=root, assemble=assembler(Scrambled(after + 1)),
            same_device=False,
        )  # fmt: skip
        assert result.evaluations == whole.evaluations
        nodes = [line for line in story(whole.folder) if '"node_finished"' in line]
        assert [line for line in story(result.folder) if '"node_finished"' in line] == nodes


def test_trouble_on_the_machine_ends_the_run_after_what_came_before(tmp_path: Path) -> None:
    def judge(source: str) -> Outcome:
        if "# 7\n" in source:
            raise MachineError("the GPU fell off")
        return accepted(1.5, source)

    class Numbered(SimulatedWriter):
        def propose(self, request: ProposalRequest) -> Proposal | None:
            return Proposal(source=SOURCE.format(note=request.ask.id),
                            mode=request.ask.mode, title="x")  # fmt: skip

    with pytest.raises(MachineError, match="the GPU fell off"):
        run(tmp_path, Scrambled(2, judge), writer=Numbered())
    (folder,) = (p for p in tmp_path.iterdir() if p.is_dir())
    assert read_state(folder).spending.evaluations == 6


def test_a_failed_request_leaves_the_others_of_its_time_on_record(tmp_path: Path) -> None:
    class Failing(SimulatedWriter):
        def propose(self, request: ProposalRequest) -> Proposal | None:
            if request.ask.id == 5:
                raise ProviderError("overloaded")
            return super().propose(request)

    with pytest.raises(ProviderError, match="overloaded"):
        run(tmp_path, Scrambled(3), writer=Failing(repeats=0, silent=0))
    (folder,) = (p for p in tmp_path.iterdir() if p.is_dir())
    state = read_state(folder)
    assert list(state.open_asks) == [5]
    assert state.spending.evaluations >= 4
    result = resume_run(
        folder, cache_root=tmp_path, assemble=assembler(Scrambled(4)), same_device=False
    )
    assert result.evaluations == 24
