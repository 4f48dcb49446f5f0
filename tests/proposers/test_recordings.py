"""The committed recordings of runs by hand can be replayed: every answer comes back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpro.proposers.replay import ReplayWriter
from kernelpro.schema.event import NodeFinished, RunStarted
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.schema.search import Ask, Decision
from kernelpro.store.export import open_text, read_jsonl

ROOT = Path(__file__).parents[2]
RECORDINGS = sorted((ROOT / "benchmarks" / "results" / "agent").glob("*.jsonl.gz"))


def test_there_are_six() -> None:
    assert len(RECORDINGS) == 6
    assert sum(path.stat().st_size for path in RECORDINGS) < 500_000


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda p: p.name.split(".")[0])
def test_a_recording_gives_its_answers_again(path: Path) -> None:
    with open_text(path, "r") as stream:
        started, *events = read_jsonl(stream)
    assert isinstance(started, RunStarted)
    assert started.problem.source == (
        ROOT / "examples" / "gpu" / f"{started.problem.name}.py"
    ).read_text("utf-8"), "the run was on the example as it stands"
    nodes = [event for event in events if isinstance(event, NodeFinished)]
    assert len(nodes) >= 6
    writer = ReplayWriter(str(path))
    for node in nodes:
        ask = Ask(id=node.tell.ask_id, parent_id=None, mode="initial", decision=Decision())
        request = ProposalRequest(
            ask=ask, problem=started.problem, graphs=started.graphs, device=started.device,
            peaks=started.peaks, parent=None,
        )  # fmt: skip
        assert node.candidate is not None
        assert writer.propose(request) == node.candidate.proposal
