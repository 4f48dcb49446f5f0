"""The few facts of an attempt that views of a whole run need: light enough for 20,000 of them."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.schema.candidate import Mode
from kernelpro.schema.event import NodeFinished
from kernelpro.schema.outcome import Status
from kernelpro.schema.search import Tell
from kernelpro.schema.usage import Usage


class NodeFacts(NamedTuple):
    """One attempt without its source, samples, findings and texts."""

    tell: Tell
    """Status, speed-up, latency and energy as the search measured them."""
    parent_id: str | None
    """As recorded: the parent itself may be missing."""
    title: str
    mode: Mode
    acted_on: tuple[str, ...]
    duplicate_of: str | None
    seconds: float
    stage_seconds: dict[str, float]
    """Wall time of each stage of the evaluation."""
    usage: tuple[Usage, ...]

    @property
    def id(self) -> str:
        """The node's id."""
        return self.tell.node_id or ""

    @property
    def status(self) -> Status | None:
        """The verdict; None if there was none."""
        return self.tell.status

    @property
    def speedup(self) -> float | None:
        """Over eager, as the search measured it; None unless accepted."""
        return self.tell.speedup


class Advice(NamedTuple):
    """One item of guidance without its text."""

    tool: str
    expected_gain: tuple[float, float]


def facts_of(finished: NodeFinished) -> NodeFacts:
    """The facts of a whole record that has a candidate."""
    candidate, outcome = finished.candidate, finished.outcome
    assert candidate is not None
    proposal = candidate.proposal
    return NodeFacts(
        tell=finished.tell, parent_id=candidate.parent_id, title=proposal.title,
        mode=proposal.mode, acted_on=proposal.acted_on, duplicate_of=finished.duplicate_of,
        seconds=finished.seconds, stage_seconds=outcome.seconds if outcome else {},
        usage=finished.usage,
    )  # fmt: skip


def advice_of(finished: NodeFinished) -> tuple[Advice, ...]:
    """What the guidance after this attempt advised."""
    items = finished.guidance.items if finished.guidance else ()
    return tuple(Advice(item.tool, item.expected_gain) for item in items)
