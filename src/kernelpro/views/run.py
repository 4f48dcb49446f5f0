"""A run's events folded into what every view asks for: nodes by id, their order, the best one."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field

from kernelpro.schema.config import Budget
from kernelpro.schema.event import (
    Asked,
    Event,
    Exchanged,
    NodeFinished,
    Remeasured,
    Resumed,
    RunStarted,
    Stopped,
)
from kernelpro.schema.guidance import Guidance
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.search import Ask
from kernelpro.schema.usage import Usage
from kernelpro.search.tells import winner_id
from kernelpro.views.node_facts import Advice, NodeFacts, advice_of, facts_of


@dataclass(slots=True)
class Run:
    """Grows by :meth:`add`, one event at a time, so that a live view and a report share it.

    Views of the whole run read ``facts`` only. ``nodes``, ``asks`` and ``advice`` hold whole
    records; a front end that cannot afford 20,000 of them passes mappings that load on demand and
    grows the run by :meth:`add_facts`.
    """

    nodes: MutableMapping[str, NodeFinished] = field(default_factory=dict)
    """Finished nodes that have a candidate, in order of evaluation."""
    asks: MutableMapping[int, Ask] = field(default_factory=dict)
    advice: MutableMapping[str, tuple[Advice, ...]] = field(default_factory=dict)
    """Node id -> what the guidance after it advised."""
    facts: dict[str, NodeFacts] = field(default_factory=dict)
    """As ``nodes``, in the same order, without the heavy parts."""
    started: RunStarted | None = None
    budget: Budget = field(default_factory=Budget)
    """The limits in force: those the run was started with, or last resumed with."""
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
    open_calls: dict[int, list[Usage]] = field(default_factory=dict)
    """What models took for asks that have no node (yet): a failed service is paid for, too."""
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
            case Exchanged(exchange=exchange):
                self.add_call(exchange.ask_id, exchange.usage)
            case NodeFinished(candidate=None):
                self.add_unanswered(event.tell.ask_id)
            case NodeFinished():
                facts = facts_of(event)
                self.nodes[facts.id] = event
                self.advice[facts.id] = advice_of(event)
                self.add_facts(facts)
            case Remeasured():
                self.remeasured[event.node_id] = event.outcome
            case Resumed():
                self.resumed.append(event.at)
                self.budget = event.budget or self.budget
                self.stopped = None
                self.remeasured = {}
            case Stopped():
                self.stopped = event

    def add_call(self, ask_id: int, usage: Usage) -> None:
        """Take in what a model took for an ask that has no node yet."""
        self.open_calls.setdefault(ask_id, []).append(usage)

    def add_facts(self, facts: NodeFacts) -> None:
        """Take in one finished node whose record is loaded on demand."""
        self.open_asks.discard(facts.tell.ask_id)
        self.open_calls.pop(facts.tell.ask_id, None)  # the node's own usage holds them
        self.facts[facts.id] = facts
        self.charged += facts.duplicate_of is None
        self.children.setdefault(facts.parent_id, []).append(facts.id)
        best = self.facts[self._best_so_far].speedup if self._best_so_far else None
        if facts.speedup is not None and facts.speedup > (best or 0.0):
            self._best_so_far = facts.id

    def usage(self) -> list[Usage]:
        """What models took, all calls of the run."""
        of_nodes = [call for facts in self.facts.values() for call in facts.usage]
        return of_nodes + [call for calls in self.open_calls.values() for call in calls]

    def add_unanswered(self, ask_id: int) -> None:
        """Take in that the writer had nothing for an ask."""
        self.open_asks.discard(ask_id)
        self.unanswered += 1

    def outcome(self, node_id: str) -> Outcome | None:
        """The newest verdict on a node: measured again if it was a finalist."""
        return self.remeasured.get(node_id) or self.nodes[node_id].outcome

    def speedup(self, node_id: str) -> float | None:
        """Newest speed-up over eager of an accepted node; None for any other."""
        again = self.remeasured.get(node_id)
        return again.speedup if again is not None else self.facts[node_id].speedup

    def latency_us(self, node_id: str) -> float | None:
        """Newest median latency of an accepted node; None for any other."""
        again = self.remeasured.get(node_id)
        if again is None:
            tell = self.facts[node_id].tell
            return tell.latency_us if tell.speedup is not None else None
        return again.latency.median_us if again.ok and again.latency else None

    def search_speedup(self, node_id: str) -> float | None:
        """Speed-up as the search measured it: comparable between all nodes."""
        return self.facts[node_id].speedup

    def parent_of(self, node_id: str) -> str | None:
        """The node this one was made from, if that node finished."""
        parent = self.facts[node_id].parent_id
        return parent if parent in self.facts else None

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
        config = self.started.config if self.started else None
        objective, slack = (config.objective, config.max_slowdown) if config else ("latency", None)
        survivor = winner_id(self.remeasured, objective, slack) if self.remeasured else None
        if survivor is not None:
            return survivor
        # The search ranks by the run's objective; while it goes on, speed-up is a fair proxy.
        if self.stopped is not None and self.stopped.best_id in self.facts:
            return self.stopped.best_id
        return self._best_so_far

    def path(self, node_id: str | None) -> tuple[str, ...]:
        """Node ids from the first version down to ``node_id``."""
        steps: list[str] = []
        while node_id is not None and node_id in self.facts:
            steps.append(node_id)
            node_id = self.parent_of(node_id)
        return tuple(reversed(steps))


def fold(events: Iterable[Event]) -> Run:
    """All events of a run, taken in."""
    run = Run()
    for event in events:
        run.add(event)
    return run
