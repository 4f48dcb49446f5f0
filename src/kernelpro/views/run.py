"""A run's events folded into what every view asks for: nodes by id, their order, the best one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kernelpro.schema.config import Budget
from kernelpro.schema.event import (
    Asked,
    Event,
    NodeFinished,
    Remeasured,
    Resumed,
    RunStarted,
    Stopped,
)
from kernelpro.schema.guidance import Guidance
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.search import Ask, Tell
from kernelpro.search.reward import ranked


@dataclass(slots=True)
class Run:
    """Grows by :meth:`add`, one event at a time, so that a live view and a report share it."""

    started: RunStarted | None = None
    budget: Budget = field(default_factory=Budget)
    """The limits in force: those the run was started with, or last resumed with."""
    asks: dict[int, Ask] = field(default_factory=dict)
    nodes: dict[str, NodeFinished] = field(default_factory=dict)
    """Finished nodes that have a candidate, in order of evaluation."""
    children: dict[str | None, list[str]] = field(default_factory=dict)
    """Parent id (None = written from scratch) -> children, oldest first."""
    remeasured: dict[str, Outcome] = field(default_factory=dict)
    stopped: Stopped | None = None
    resumed: list[str] = field(default_factory=list)
    charged: int = 0
    """Evaluations counted against the budget: repeats of a source are not."""
    unanswered: int = 0
    """Asks the writer had nothing for."""
    open_asks: set[int] = field(default_factory=set)
    _best_so_far: str | None = None

    def add(self, event: Event) -> None:
        """Take in one event."""
        match event:
            case RunStarted():
                self.started = event
                self.budget = event.config.budget
            case Asked():
                for ask in event.asks:
                    self.asks[ask.id] = ask
                    self.open_asks.add(ask.id)
            case NodeFinished():
                self._finish(event)
            case Remeasured():
                self.remeasured[event.node_id] = event.outcome
            case Resumed():
                self.resumed.append(event.at)
                self.budget = event.budget or self.budget
                self.stopped = None
                self.remeasured = {}
            case Stopped():
                self.stopped = event

    def _finish(self, event: NodeFinished) -> None:
        self.open_asks.discard(event.tell.ask_id)
        if event.candidate is None:
            self.unanswered += 1
            return
        node_id = event.candidate.id
        self.nodes[node_id] = event
        self.charged += event.duplicate_of is None
        self.children.setdefault(event.candidate.parent_id, []).append(node_id)
        speedup, best = self.speedup(node_id), self._best_so_far
        if speedup is not None and speedup > ((best and self.speedup(best)) or 0.0):
            self._best_so_far = node_id

    def outcome(self, node_id: str) -> Outcome | None:
        """The newest verdict on a node: measured again if it was a finalist."""
        return self.remeasured.get(node_id) or self.nodes[node_id].outcome

    def speedup(self, node_id: str) -> float | None:
        """Speed-up over eager of an accepted node; None for any other."""
        outcome = self.outcome(node_id)
        return outcome.speedup if outcome is not None else None

    def search_speedup(self, node_id: str) -> float | None:
        """Speed-up as the search measured it: comparable between all nodes."""
        outcome = self.nodes[node_id].outcome
        return outcome.speedup if outcome is not None else None

    def parent_of(self, node_id: str) -> str | None:
        """The node this one was made from, if that node finished."""
        candidate = self.nodes[node_id].candidate
        parent = candidate.parent_id if candidate else None
        return parent if parent in self.nodes else None

    def received(self, node_id: str) -> Guidance | None:
        """The guidance that was in front of the writer of this node."""
        parent = self.parent_of(node_id)
        return self.nodes[parent].guidance if parent else None

    def source(self, node_id: str) -> str:
        """The candidate's file."""
        candidate = self.nodes[node_id].candidate
        return candidate.proposal.source if candidate else ""

    @property
    def best_id(self) -> str | None:
        """The best of those measured again after the search, else the best of the search."""
        objective = self.started.config.objective if self.started else "latency"
        survivors = [tell_of(n, o) for n, o in self.remeasured.items()]
        survivor = next(iter(ranked(survivors, objective)), None)
        if survivor is not None:
            return survivor.node_id
        if self.stopped is not None and self.stopped.best_id in self.nodes:
            return self.stopped.best_id
        return self._best_so_far

    def path(self, node_id: str | None) -> tuple[str, ...]:
        """Node ids from the first version down to ``node_id``."""
        steps: list[str] = []
        while node_id is not None and node_id in self.nodes:
            steps.append(node_id)
            node_id = self.parent_of(node_id)
        return tuple(reversed(steps))


def tell_of(node_id: str, outcome: Outcome) -> Tell:
    """The part of a second measurement that decides the ranking."""
    return Tell(
        ask_id=0, node_id=node_id, status=outcome.status, stage=outcome.stage,
        speedup=outcome.speedup, speedup_ci95=outcome.speedup_ci95,
        latency_us=outcome.latency.median_us if outcome.latency else None,
        energy_j=outcome.energy.joules if outcome.energy else None,
    )  # fmt: skip


def fold(events: Iterable[Event]) -> Run:
    """All events of a run, taken in."""
    run = Run()
    for event in events:
        run.add(event)
    return run
