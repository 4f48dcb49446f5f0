"""What is kept of one task of a KernelBench suite, and what the suite was run with.

Plain records: everything a table, an exporter or a reader without kernelpro needs, raw samples
included. Nothing here decides anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kernelpro.bench.kernelbench_tasks import TaskKey
from kernelpro.schema.codec import CONFIG
from kernelpro.schema.config import EvaluationConfig
from kernelpro.schema.outcome import Latency, Outcome
from kernelpro.schema.problem import Precision

State = Literal["started", "improved", "eager_kept", "unsolved", "failed"]
"""``started``: its run is under way or was cut off, and goes on next time. ``improved``: faster
than eager beyond the measured noise. ``eager_kept``: nothing was, so the reference is handed back
and counts as exactly 1.0. ``unsolved``: imported generations of which none was accepted.
``failed``: no verdict on the task (``fault`` says whose doing)."""

Fault = Literal["", "problem", "machine", "crash", "time"]

DONE: tuple[State, ...] = ("improved", "eager_kept", "unsolved")
"""States that stand. A ``failed`` task is tried again only when asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteConfig:
    """What every task of a suite folder was run with: a suite never mixes two of these."""

    precision: Precision
    device: str
    model: str
    evaluations: int
    task_minutes: float | None = None
    search: str = "mcts"
    seed: int = 0
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    imported: str = ""
    """Name of the folder whose generations were scored; empty for runs of our own."""
    checkout: str = ""
    """Commit of the KernelBench checkout, or what is known of it."""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Versus:
    """Further comparisons of what is handed back, from one interleaved match of their own."""

    latencies: dict[str, Latency]
    """By side: ``eager`` (in the suite's arithmetic), ``strict_eager`` (float32, TF32 off),
    ``compile``, ``candidate``."""
    paper_like: float | None = None
    """``strict_eager`` over what is handed back: the candidate, else eager with TF32 on."""
    paper_like_ci95: tuple[float, float] | None = None
    paper_tolerance_passed: bool | None = None
    """The answers of timed calls are within atol 1e-2, rtol 1e-3 of eager's; None without a
    candidate."""
    answers_checked: int = 0
    worst_error: float = 0.0
    """Largest |difference| over (atol + rtol |eager|); at most 1 if it passed."""
    tf32_switch: float | None = None
    """``strict_eager`` over ``eager``: what TF32 alone is worth."""
    compiled: float | None = None
    """``eager`` over ``compile``, where the run itself did not measure it."""
    seed: int = 0
    missing: str = ""
    """Why the match was not played to its end, if it was not."""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One imported generation and its verdict."""

    number: int
    outcome: Outcome

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """One task, whatever came of it."""

    key: TaskKey
    name: str
    problem_hash: str
    state: State
    fault: Fault = ""
    detail: str = ""
    """Why eager was kept, or what failed."""
    run: str = ""
    """Id of the run, whose folder is ``runs/<id>`` of the suite."""
    labels: tuple[str, ...] = ()
    """Of the task lint, on this device."""
    speedup: float | None = None
    """Over eager in the suite's arithmetic; exactly 1.0 where eager is kept; None = not solved."""
    over_compile: float | None = None
    """Over torch.compile, same arithmetic."""
    title: str = ""
    """What the winner is."""
    left_to_torch: str = ""
    """What the winner leaves to the library, in the writer's words."""
    written: int = 0
    """Candidates that the writer proposed and the referee saw."""
    statuses: dict[str, int] = field(default_factory=dict)
    source: str = ""
    """The winner's file, relative to the suite folder."""
    outcome: Outcome | None = None
    """The winner's: the second measurement, full checks."""
    versus: Versus | None = None
    samples: tuple[Sample, ...] = ()
    controls_passing: dict[str, list[str]] = field(default_factory=dict)
    """Input family -> wrong answers that would have passed: what the task cannot tell apart."""
    device: str = ""
    seconds: float = 0.0
    """Wall time of the task, over all sittings."""
    finished_at: str = ""
    """ISO date and time."""
    versions: dict[str, str] = field(default_factory=dict)

    __pydantic_config__ = CONFIG

    @property
    def solved(self) -> bool:
        """True if something correct that is not slower than eager is handed back."""
        return self.speedup is not None
