"""The closed union of run events: the append-only truth of a run.

``payload`` records are nested whole. Adding a field needs a default; changing a meaning needs a
new ``EVENT_VERSION`` and a migration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from kernelpro.schema.candidate import Candidate
from kernelpro.schema.codec import CONFIG
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.exchange import Exchange
from kernelpro.schema.finding import Diagnosis
from kernelpro.schema.graph import Graph
from kernelpro.schema.guidance import Guidance
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.library import Lesson
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.problem import Problem
from kernelpro.schema.profile import Profile
from kernelpro.schema.search import Ask, StopReason, Tell
from kernelpro.schema.usage import Usage

EVENT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """First event of a run."""

    run_id: str
    problem: Problem
    graphs: tuple[Graph, ...]
    config: RunConfig
    device: Device
    peaks: Peaks
    labels: tuple[str, ...] = ()
    """Task-lint labels (``constant``, ``too_small`` ...)."""
    lessons: tuple[Lesson, ...] = ()
    """Of earlier runs, as the library held them at the start."""
    versions: dict[str, str] = field(default_factory=dict)
    kind: Literal["run_started"] = "run_started"

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The search handed out requests; replaying them rebuilds its state exactly."""

    asks: tuple[Ask, ...]
    kind: Literal["asked"] = "asked"

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """A writer talked to a model: recorded before the reply is used, so that a crash loses none."""

    exchange: Exchange
    kind: Literal["exchanged"] = "exchanged"

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFinished:
    """One evaluated node, whole: written in one transaction."""

    tell: Tell
    candidate: Candidate | None
    """None = the writer had nothing to propose for the ask."""
    outcome: Outcome | None = None
    profile: Profile | None = None
    diagnosis: Diagnosis | None = None
    guidance: Guidance | None = None
    memory: tuple[MemoryEntry, ...] = ()
    usage: tuple[Usage, ...] = ()
    duplicate_of: str | None = None
    """Node id with the same source: the outcome was not measured again."""
    seconds: float = 0.0
    ledger: tuple[dict[str, Any], ...] = ()
    """Predicted against realised gain of the findings this node acted on."""
    kind: Literal["node_finished"] = "node_finished"

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Remeasured:
    """A finalist measured again, on fresh inputs, interleaved with the other finalists."""

    node_id: str
    outcome: Outcome
    kind: Literal["remeasured"] = "remeasured"

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """The run went on after a stop or a crash."""

    at: str
    budget: Budget | None = None
    """The budget from here on; None = as before."""
    kind: Literal["resumed"] = "resumed"

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The run ended, and why."""

    reason: StopReason
    best_id: str | None
    """The winner of the second measurement; the search's own best where there was none."""
    detail: str = ""
    elapsed_s: float = 0.0
    kind: Literal["stopped"] = "stopped"

    __pydantic_config__ = CONFIG


Event = RunStarted | Asked | Exchanged | NodeFinished | Remeasured | Resumed | Stopped

EVENT_TYPES: dict[str, type[Any]] = {
    "run_started": RunStarted,
    "asked": Asked,
    "exchanged": Exchanged,
    "node_finished": NodeFinished,
    "remeasured": Remeasured,
    "resumed": Resumed,
    "stopped": Stopped,
}
