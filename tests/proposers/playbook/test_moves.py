"""What the memory says about moves, and who may read the advice."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.proposers.playbook.test_writer import PEAKS, _all, _attempt, _request, rows

from kernelpro.errors import UserError
from kernelpro.proposers.playbook.moves import experience
from kernelpro.proposers.playbook.recipes.base import Backend, Task, few_habits
from kernelpro.proposers.playbook.recipes.cpu import CpuBackend
from kernelpro.proposers.playbook.recipes.cuda import CudaBackend
from kernelpro.proposers.playbook.writer import POOL, PlaybookWriter
from kernelpro.schema.finding import Diagnosis, Finding, KernelDiagnosis, Severity
from kernelpro.schema.guidance import Guidance
from kernelpro.schema.hardware import Device
from kernelpro.schema.memory import MemoryCategory, MemoryEntry
from kernelpro.text import content_hash

__all__ = ["rows"]


def entry(category: MemoryCategory, move: str, conditions: str = "c", **more: Any) -> MemoryEntry:
    return MemoryEntry(id=1, category=category, text="t", candidate_id="n1", move=move,
                       conditions=conditions, **more)  # fmt: skip


def test_experience_counts_verdicts_and_tells_places_apart() -> None:
    known = experience(
        [
            entry("pattern", "a"), entry("learning", "b"), entry("error", "c"),
            entry("error", "d", "elsewhere"), entry("pattern", "a", "elsewhere"),
            entry("error", "e", retired_by=3), entry("finding", "f"),
        ],
        "c",
    )  # fmt: skip
    assert known.futile == {"b", "c"}
    assert known.failed == {"c"}
    assert known.balance == {"a": 2, "b": -1, "c": -1, "d": -1}


def _optimized(rows: Any, **request: Any) -> str | None:
    first = PlaybookWriter().propose(_request(rows))
    assert first is not None
    made = PlaybookWriter().propose(dataclasses.replace(_request(rows, _attempt(first)), **request))
    return None if made is None else made.move


def test_moves_that_only_disappointed_elsewhere_come_last(rows: Any) -> None:
    neighbours = [m for m in CpuBackend.neighbours if m != "two_pass"]
    memory = tuple(entry("learning", move, "elsewhere") for move in neighbours)
    assert {_optimized(rows, memory=memory, seed=s) for s in range(5)} == {"two_pass"}


def test_the_seed_draws_among_moves_that_nothing_speaks_for(rows: Any) -> None:
    drawn = [_optimized(rows, seed=s) for s in range(12)]
    assert drawn == [_optimized(rows, seed=s) for s in range(12)]
    assert len(set(drawn)) >= 3


def test_without_guidance_the_diagnosis_stays_unread(rows: Any) -> None:
    """In the raw arm the diagnosis is on record, but the writer was shown counters only."""
    first = PlaybookWriter().propose(_request(rows))
    assert first is not None
    finding = Finding(
        tool="t", severity=Severity.HIGH, rank=1, summary="s", evidence=(), cause="c",
        actions=("do",), expected_gain=(1.0, 2.0), moves=("flush_denormals",),
    )  # fmt: skip
    kernel = KernelDiagnosis(kernel="k", roofline_class="memory", confidence=1.0,
                             duration_us=1.0, findings=(finding,), headroom=2.0)  # fmt: skip
    parent = dataclasses.replace(
        _attempt(first), diagnosis=Diagnosis(kernels=(kernel,)),
        guidance=Guidance(arm="raw", text="counters"),
    )  # fmt: skip
    moves = {
        made.move for s in range(8)
        if (made := PlaybookWriter().propose(dataclasses.replace(_request(rows, parent), seed=s)))
    }  # fmt: skip
    assert "flush_denormals" not in moves


def test_plain_runs_begin_slow_and_every_design_differs(rows: Any) -> None:
    seen: set[str] = set()
    knobs = []
    while (
        made := PlaybookWriter("plain").propose(_request(rows, seen=frozenset(seen)))
    ) is not None:
        seen.add(content_hash(made.source))
        knobs.append(made.knobs)
    assert len(knobs) >= 10
    assert all(k["streaming"] is False and k["staging"] in ("none", "all") for k in knobs)
    assert len(_all(rows, None)) >= 20, "independent attempts do not run out early"
    with pytest.raises(UserError, match=r"playbook:plan.*expert, plain"):
        PlaybookWriter("plan")


@pytest.mark.parametrize("backend", [CpuBackend(), CudaBackend()])
def test_starts_are_settings_of_their_back_end(rows: Any, backend: Backend) -> None:
    device = Device(kind="cpu", name="t", uuid="u", units=2, memory_bytes=1 << 33)
    task = Task(rows[0], rows[1], device, PEAKS)
    designs, drafts = list(backend.designs(task)), list(backend.drafts(task))
    assert len(set(designs)) == len(designs) >= 8
    assert len(set(drafts)) == len(drafts) >= 10
    assert all(isinstance(k, backend.knobs_type) for k in designs + drafts)
    assert not set(designs) & set(drafts)
    assert POOL >= 24


def test_habits_that_contradict_each_other_or_change_nothing_are_left_out() -> None:
    knobs = CpuBackend.knobs_type(lanes=1, unroll=1)
    found = list(few_habits(knobs, [{"lanes": 4}, {"lanes": 8}, {"unroll": 1}, {"unroll": 2}]))
    assert [(k.lanes, k.unroll) for k in found] == [(1, 1), (4, 1), (8, 1), (1, 2), (4, 2), (8, 2)]
