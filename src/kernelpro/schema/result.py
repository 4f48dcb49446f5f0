"""What a finished (or interrupted) run came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kernelpro.schema.candidate import Candidate
from kernelpro.schema.codec import CONFIG
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.search import StopReason
from kernelpro.schema.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalist:
    """A top candidate: its speed-up in the search, and when measured again beside the others."""

    node_id: str
    search_speedup: float
    outcome: Outcome
    """The second measurement, on fresh inputs; may be a failure."""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The end of a run, all of it read back from the run's events."""

    run_id: str
    folder: str
    problem: str
    device: str
    stop_reason: StopReason
    detail: str
    best: Candidate | None
    """The winner; None if no candidate is better than the eager baseline."""
    outcome: Outcome | None
    """The winner's outcome: the second measurement where there is one."""
    keep_eager: bool
    """True if nothing is faster than the eager baseline beyond the measured noise."""
    finalists: tuple[Finalist, ...] = ()
    pareto: tuple[str, ...] = ()
    """Attempts that no other beats in both speed and energy, fastest first; empty where energy was
    not measured."""
    labels: tuple[str, ...] = ()
    """Task-lint labels; a labelled problem stays out of headline aggregates."""
    evaluations: int = 0
    """Evaluations charged to the budget: duplicates are not."""
    nodes: int = 0
    duplicates: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    """Nodes by status."""
    usage: tuple[Usage, ...] = ()
    """Summed by role and model."""
    elapsed_s: float = 0.0
    """Over all sessions of the run."""

    __pydantic_config__ = CONFIG

    @property
    def speedup(self) -> float | None:
        """The winner's speed-up over eager; None if eager is to be kept."""
        return None if self.outcome is None else self.outcome.speedup

    @property
    def export_path(self) -> Path:
        """Where the drop-in module of this run belongs: ``best.py`` in the run folder."""
        return Path(self.folder) / "best.py"
