"""What the search asks for and what it is told; the search itself is pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelpro.schema.candidate import Mode
from kernelpro.schema.codec import CONFIG
from kernelpro.schema.outcome import Stage, Status

Objective = Literal["latency", "energy", "edp", "ed2p", "lexicographic"]
StopReason = Literal[
    "budget_evaluations", "budget_time", "budget_cost", "target_met", "near_roofline",
    "stagnation", "exhausted", "interrupted", "error",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Why the search chose to expand here; shown in the report."""

    mean: float | None = None
    bonus: float | None = None
    gate_open: bool | None = None
    score: float | None = None
    path: tuple[str, ...] = ()
    """Node ids from the root to the expanded node."""
    text: str = ""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request for a proposal."""

    id: int
    """Counts up from 1 within the run; ``tell`` names it."""
    parent_id: str | None
    """Candidate to improve or repair; None = write from scratch."""
    mode: Mode
    decision: Decision

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """The result of one ask, reduced to what the search needs."""

    ask_id: int
    node_id: str | None
    """None = the writer had nothing (more) to propose here."""
    status: Status | None = None
    stage: Stage | None = None
    speedup: float | None = None
    speedup_ci95: tuple[float, float] | None = None
    energy_j: float | None = None
    latency_us: float | None = None
    baseline_energy_j: float | None = None

    __pydantic_config__ = CONFIG
