"""The writer: deterministic, never repeats itself, turns findings into moves, repairs failures."""

from __future__ import annotations

import ast
import dataclasses

import pytest
from tests.proposers.playbook.candidates import problem

from kernelpro.problems.export import export_graphs
from kernelpro.proposers.playbook.cpu.knobs import CpuKnobs
from kernelpro.proposers.playbook.recipes.base import fingerprint
from kernelpro.proposers.playbook.writer import PlaybookWriter
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.codec import dumps, loads
from kernelpro.schema.graph import Graph
from kernelpro.schema.guidance import Guidance, GuidanceItem
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.outcome import Outcome, Stage, Status
from kernelpro.schema.problem import Problem
from kernelpro.schema.proposal_request import Attempt, ProposalRequest
from kernelpro.schema.search import Ask, Decision
from kernelpro.text import content_hash

DEVICE = Device(kind="cpu", name="test", uuid="u", units=2, memory_bytes=1 << 33, simd_bits=512)
PEAKS = Peaks(copy_gb_s=20.0, flops={"float32": 1e11}, source="estimated")


@pytest.fixture(scope="module")
def rows() -> tuple[Problem, tuple[Graph, ...]]:
    given = problem("return torch.softmax(F.gelu(x), 1)", "x = torch.randn(64, 4096)")
    return given, export_graphs(given)


@pytest.fixture(scope="module")
def product() -> tuple[Problem, tuple[Graph, ...]]:
    given = problem("return F.gelu(x @ y)", "x = torch.randn(64, 64); y = torch.randn(64, 64)")
    return given, export_graphs(given)


def _request(
    task: tuple[Problem, tuple[Graph, ...]], parent: Attempt | None = None, *,
    mode: str = "optimize", seen: frozenset[str] = frozenset(),
    memory: tuple[MemoryEntry, ...] = (),
) -> ProposalRequest:  # fmt: skip
    parent_id = None if parent is None else parent.candidate.id
    ask = Ask(
        id=1, parent_id=parent_id, mode="initial" if parent is None else mode,  # type: ignore[arg-type]
        decision=Decision(),
    )  # fmt: skip
    return ProposalRequest(
        ask=ask, problem=task[0], graphs=task[1], device=DEVICE, peaks=PEAKS, parent=parent,
        seen_hashes=seen, memory=memory,
    )  # fmt: skip


def _first(task: tuple[Problem, tuple[Graph, ...]]) -> Proposal:
    made = PlaybookWriter().propose(_request(task))
    assert made is not None
    return made


def _attempt(
    proposal: Proposal, *, status: Status = Status.WRONG_RESULT, moves: tuple[str, ...] = ()
) -> Attempt:
    items = (
        GuidanceItem(tool="thread_scaling", title="t", body="idle cores", moves=moves),
    ) if moves else ()  # fmt: skip
    candidate = Candidate(
        id="n0001", parent_id=None, source_hash=content_hash(proposal.source), proposal=proposal
    )
    outcome = Outcome(status=status, stage=Stage.VERIFY, message="off by 3")
    return Attempt(candidate=candidate, outcome=outcome,
                   guidance=Guidance(arm="full", text="", items=items))  # fmt: skip


def _all(
    task: tuple[Problem, tuple[Graph, ...]], parent: Attempt | None, *, mode: str = "optimize",
    limit: int = 200,
) -> list[Proposal]:  # fmt: skip
    found: list[Proposal] = []
    seen: set[str] = set()
    while len(found) < limit:
        made = PlaybookWriter().propose(_request(task, parent, mode=mode, seen=frozenset(seen)))
        if made is None:
            return found
        assert content_hash(made.source) not in seen
        seen.add(content_hash(made.source))
        found.append(made)
    raise AssertionError("the writer never ends")


def test_same_request_same_proposal(rows: tuple[Problem, tuple[Graph, ...]]) -> None:
    assert _first(rows) == _first(rows)


def test_proposal_is_a_complete_module_and_a_valid_record(
    rows: tuple[Problem, tuple[Graph, ...]],
) -> None:
    made = _first(rows)
    classes = {n.name for n in ast.parse(made.source).body if isinstance(n, ast.ClassDef)}
    assert {"Model", "ModelNew"} <= classes
    assert made.writer == "playbook" and made.recipe == "cpu"
    assert loads(Proposal, dumps(made)) == made


def test_roots_and_children_end_without_repeats(
    product: tuple[Problem, tuple[Graph, ...]],
) -> None:
    roots = _all(product, None)
    assert [r.knobs["matmul"] for r in roots[:2]] == ["own", "library"]
    children = _all(product, _attempt(roots[0]))
    assert len(children) >= 8


def test_findings_choose_the_move(rows: tuple[Problem, tuple[Graph, ...]]) -> None:
    parent = _attempt(_first(rows), moves=("reduce_passes", "approximate_math"))
    made = PlaybookWriter().propose(_request(rows, parent))
    assert made is not None
    assert (made.move, made.acted_on) == ("reduce_passes", ("thread_scaling",))
    assert made.knobs["staging"] == "all"
    assert made.conditions == fingerprint("cpu", CpuKnobs())


def test_moves_that_failed_under_the_same_conditions_are_skipped(
    rows: tuple[Problem, tuple[Graph, ...]],
) -> None:
    parent = _attempt(_first(rows), moves=("reduce_passes", "approximate_math"))
    failed = MemoryEntry(
        id=1, category="learning", text="no gain", candidate_id="n0002", move="reduce_passes",
        conditions=fingerprint("cpu", CpuKnobs()),
    )  # fmt: skip
    made = PlaybookWriter().propose(_request(rows, parent, memory=(failed,)))
    assert made is not None and made.move == "approximate_math"
    elsewhere = dataclasses.replace(failed, conditions="cpu lanes=8")
    made = PlaybookWriter().propose(_request(rows, parent, memory=(elsewhere,)))
    assert made is not None and made.move == "reduce_passes"


def test_unknown_moves_are_ignored(rows: tuple[Problem, tuple[Graph, ...]]) -> None:
    parent = _attempt(_first(rows), moves=("use_wgmma", "channels_last"))
    made = PlaybookWriter().propose(_request(rows, parent))
    assert made is not None and made.move not in ("use_wgmma", "channels_last")


def test_moves_that_gained_elsewhere_come_first(rows: tuple[Problem, tuple[Graph, ...]]) -> None:
    gained = MemoryEntry(
        id=1, category="pattern", text="gained", candidate_id="n2", move="approximate_math",
        conditions="cpu lanes=8",
    )  # fmt: skip
    made = PlaybookWriter().propose(_request(rows, _attempt(_first(rows)), memory=(gained,)))
    assert made is not None and made.move == "approximate_math"


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.OK])
def test_repair_goes_from_specific_to_plain(
    rows: tuple[Problem, tuple[Graph, ...]], status: Status
) -> None:
    first = _first(rows)
    fast = dataclasses.replace(first, knobs={**first.knobs, "fast_math": ["exp"]})
    repairs = _all(rows, _attempt(fast, status=status), mode="repair")
    assert repairs[-1].knobs["grouping"] == "single"
    assert repairs[-1].knobs["lanes"] == 1
    if status is Status.WRONG_RESULT:
        assert repairs[0].knobs["fast_math"] == []


def test_a_stranger_as_parent_restarts_from_the_recipes(
    rows: tuple[Problem, tuple[Graph, ...]],
) -> None:
    foreign = Proposal(source="class ModelNew: ...", mode="initial", title="x", writer="external")
    made = PlaybookWriter().propose(_request(rows, _attempt(foreign)))
    assert made is not None and made.source == _first(rows).source


def test_nothing_native_means_nothing_proposed() -> None:
    given = problem("return torch.sort(x, 0).values", "x = torch.randn(4, 4)")
    task = (given, export_graphs(given))
    assert PlaybookWriter().propose(_request(task)) is None


def test_several_input_sets_get_a_path_each() -> None:
    given = problem("return F.gelu(x) * 2", "x = torch.randn(8, 32)")
    more = given.source + "\n\nINPUT_SETS = [get_inputs, lambda: [torch.randn(5, 7)]]\n"
    both = dataclasses.replace(given, source=more, input_sets=2, source_hash=content_hash(more))
    made = _first((both, export_graphs(both)))
    assert "_native_1" in made.source and "(5, 7)" in made.source
