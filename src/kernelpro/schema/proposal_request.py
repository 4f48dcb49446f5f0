"""Everything a writer may see when it is asked for the next candidate."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from kernelpro.schema.candidate import Candidate
from kernelpro.schema.codec import CONFIG
from kernelpro.schema.exchange import Exchange
from kernelpro.schema.finding import Diagnosis
from kernelpro.schema.graph import Graph
from kernelpro.schema.guidance import Guidance
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.problem import Problem
from kernelpro.schema.search import Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A candidate that was tried, and how it ended."""

    candidate: Candidate
    outcome: Outcome
    guidance: Guidance | None = None
    diagnosis: Diagnosis | None = None

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRequest:
    """One request to a writer. It never contains reference outputs, seeds or tolerances in use."""

    ask: Ask
    problem: Problem
    graphs: tuple[Graph, ...]
    device: Device
    peaks: Peaks
    parent: Attempt | None
    siblings: tuple[Attempt, ...] = ()
    """Earlier children of the same parent, oldest first."""
    best: Attempt | None = None
    memory: tuple[MemoryEntry, ...] = ()
    seen_hashes: Set[str] = frozenset()
    """Source hashes already tried in this run: proposing one again is wasted."""
    seed: int = 0
    """Derived from the run's seed and the ask: same run, same request, same proposal."""
    replies: tuple[Exchange, ...] = ()
    """Exchanges already paid for on this ask before a crash: used up before a model is asked."""

    __pydantic_config__ = CONFIG
