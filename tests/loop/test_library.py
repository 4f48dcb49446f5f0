"""Lessons outlive a run, come from verdicts only, and do not change a run that has begun."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.loop.simulated import PROBLEM, accepted, assembler, failure, prepare, story

from kernelpro.errors import UserError
from kernelpro.loop.library import LESSONS_SHOWN, Library, family_of, shown, situation_of
from kernelpro.loop.run import resume_run, start_run, started_of
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.finding import Diagnosis, Finding, KernelDiagnosis, Severity
from kernelpro.schema.graph import Graph, GraphNode
from kernelpro.schema.library import Lesson
from kernelpro.schema.outcome import Outcome, Stage, Status
from kernelpro.schema.proposal_request import Attempt, ProposalRequest
from kernelpro.schema.usage import Usage

SOURCE = "class ModelNew:\n    def forward(self, x):\n        return x\n\n\n# {note}\n"
SPEEDS = {"start": 1.0, "helps": 1.5, "idle": 1.001, "breaks": None}


class Mover:
    """Starts once, then makes one named move after the other on whatever it is given."""

    def __init__(self) -> None:
        self.requests: list[ProposalRequest] = []

    def propose(self, request: ProposalRequest) -> Proposal:
        self.requests.append(request)
        move = None if request.parent is None else list(SPEEDS)[1 + len(self.requests) % 3]
        note = f"{move or 'start'} {len(self.requests)}"
        return Proposal(source=SOURCE.format(note=note), mode=request.ask.mode, title=note,
                        move=move, conditions="c", writer="mover")  # fmt: skip

    def usage(self) -> tuple[Usage, ...]:
        return ()


def judge(source: str) -> Outcome:
    speed = SPEEDS[source.split("# ")[1].split()[0]]
    if speed is None:
        return failure(Status.WRONG_RESULT, Stage.VERIFY, source)
    return accepted(speed, source)


def run(folder: Path, library: Path | None, writer: Mover | None = None, n: int = 12) -> Any:
    config = RunConfig(
        device="cpu", search="greedy", library=None if library is None else str(library),
        budget=Budget(evaluations=n),
    )  # fmt: skip
    return start_run(PROBLEM, config, runs_root=folder, cache_root=folder, prepare=prepare,
                     assemble=assembler(judge=judge, writer=writer or Mover()))  # fmt: skip


def test_a_run_leaves_its_verdicts_and_the_next_one_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "lessons" / "library.sqlite"
    run(tmp_path, path)
    lessons = {x.move: x for x in Library(path).lessons("Simulated CPU", "unknown")}
    assert set(lessons) == {"helps", "idle", "breaks"}
    assert lessons["helps"].gained >= 1
    assert lessons["breaks"].failed >= 1 and lessons["breaks"].gain is None
    assert lessons["idle"].gain is not None and lessons["idle"].gained == 0
    assert Library(path).lessons("Another CPU", "unknown") == ()
    assert Library(path).lessons("Simulated CPU", "matmul") == ()

    writer = Mover()
    second = run(tmp_path, path, writer)
    assert set(started_of(second.folder).lessons) == set(lessons.values())
    told = {e.move: e for e in writer.requests[1].memory if e.id < 0}
    assert set(told) == {"helps", "idle", "breaks"}
    assert told["breaks"].category == "learning"
    assert told["breaks"].conditions == "library: unknown"
    assert "failed" in told["breaks"].text
    both = {x.move: x for x in Library(path).lessons("Simulated CPU", "unknown")}
    assert both["breaks"].runs == 2
    assert both["breaks"].failed == 2 * lessons["breaks"].failed


def test_without_the_option_nothing_is_read_or_written(tmp_path: Path) -> None:
    writer = Mover()
    run(tmp_path, None, writer)
    assert not list(tmp_path.rglob("*library*"))
    assert all(e.id >= 0 for r in writer.requests for e in r.memory)


def test_a_resumed_run_keeps_the_lessons_it_began_with(tmp_path: Path) -> None:
    path = tmp_path / "library.sqlite"
    first = run(tmp_path, path, n=4)
    before = story(first.folder)
    count = sum(x.gained + x.futile + x.failed
                for x in Library(path).lessons("Simulated CPU", "unknown"))  # fmt: skip
    writer = Mover()
    resume_run(
        first.folder, cache_root=tmp_path, budget=Budget(evaluations=8), same_device=False,
        assemble=assembler(judge=judge, writer=writer),
    )  # fmt: skip
    assert story(first.folder)[: len(before) - 2] == before[:-2]
    assert started_of(first.folder).lessons == ()
    assert all(e.id >= 0 for r in writer.requests for e in r.memory)
    after = sum(x.gained + x.futile + x.failed
                for x in Library(path).lessons("Simulated CPU", "unknown"))  # fmt: skip
    assert after > count
    assert {x.runs for x in Library(path).lessons("Simulated CPU", "unknown")} == {1}


def test_an_unusable_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("lessons learnt\n" * 100)
    with pytest.raises(UserError, match=r"notes\.txt cannot be used"):
        run(tmp_path, tmp_path / "notes.txt")


def lesson(move: str, bottleneck: str, finding: str = "", **counts: Any) -> Lesson:
    fields = {"gained": 1, "futile": 0, "failed": 0, "gain": 1.3, "runs": 1, **counts}
    return Lesson(device="d", family="f", bottleneck=bottleneck, finding=finding, move=move,
                  **fields)  # fmt: skip


def diagnosed(bottleneck: Any, *tools: str) -> Diagnosis:
    findings = tuple(
        Finding(tool=t, severity=Severity.HIGH, rank=n, summary="s", evidence=(), cause="c",
                actions=("do",), expected_gain=(1.0, 2.0))
        for n, t in enumerate(tools, start=1)
    )  # fmt: skip
    kernel = KernelDiagnosis(kernel="k", roofline_class=bottleneck, confidence=1.0,
                             duration_us=1.0, findings=findings, headroom=2.0)  # fmt: skip
    return Diagnosis(kernels=(kernel,))


def test_lessons_are_shown_by_bottleneck_state() -> None:
    lessons = [
        lesson("a", "memory", "simd_width"), lesson("b", "compute"),
        lesson("c", "memory", "scalar_math_call", gained=0, futile=2),
        *(lesson(f"m{n}", "memory") for n in range(20)),
    ]  # fmt: skip
    candidate = Candidate(id="n1", parent_id=None, source_hash="",
                          proposal=Proposal(source="", mode="initial", title=""))  # fmt: skip
    parent = Attempt(candidate=candidate, outcome=accepted(1.0, ""),
                     diagnosis=diagnosed("memory", "scalar_math_call"))  # fmt: skip
    found = shown(lessons, parent)
    assert [e.move for e in found[:2]] == ["c", "a"]
    assert found[0].category == "learning"
    assert len(found) == LESSONS_SHOWN
    assert "b" not in {e.move for e in found}
    assert shown(lessons, None) == ()
    assert situation_of(None).bottleneck == "unknown"


@pytest.mark.parametrize(
    ("operators", "matmul", "family"),
    [
        (("aten.mm.default", "aten.relu.default"), True, "matmul"),
        (("aten._softmax.default",), False, "reduction"),
        (("aten.mean.dim", "aten.mul.Tensor"), False, "reduction"),
        (("aten.native_layer_norm.default",), False, "reduction"),
        (("aten.maximum.default", "aten.mul.Tensor"), False, "elementwise"),
    ],
)
def test_families(operators: tuple[str, ...], matmul: bool, family: str) -> None:
    nodes = tuple(GraphNode(name=o, op=o, args=(), kwargs={}, outputs=()) for o in operators)
    graph = Graph(inputs=(), nodes=nodes, outputs=(), has_matmul=matmul)
    assert family_of([graph]) == family
    assert family_of([]) == "unknown"
