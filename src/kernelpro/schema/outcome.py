"""The evaluation record: what the referee found, with the evidence for it (DESIGN section 7)."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Literal

from kernelpro.schema.codec import CONFIG


class Status(enum.StrEnum):
    """How an evaluation ended, in order of the stage that ends it."""

    REJECTED = "rejected"
    BUILD_ERROR = "build_error"
    LOAD_ERROR = "load_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    WRONG_RESULT = "wrong_result"
    CHEATING = "cheating"
    OK = "ok"


class Stage(enum.StrEnum):
    """The step of an evaluation that was reached."""

    STATIC = "static"
    BUILD = "build"
    LOAD = "load"
    RUN = "run"
    VERIFY = "verify"
    TIME = "time"
    DONE = "done"


STAGE_RANK = {stage: rank for rank, stage in enumerate(Stage)}
"""Later stage = closer to success; used to pick the best failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Time of one call, in microseconds, from raw samples."""

    median_us: float
    ci95_us: tuple[float, float]
    """95 % confidence interval of the median (bootstrap)."""
    samples: tuple[float, ...]
    timer: str
    """``monotonic`` (CPU), ``cuda_event``, ``cupti``."""
    kind: Literal["launch_inclusive", "device"] = "launch_inclusive"
    device_median_us: float | None = None
    """Time between device events with the launches queued ahead (GPU)."""
    launch_inclusive_median_us: float | None = None
    """Host time of a call on an idle GPU, through the synchronise that follows it."""
    rounds: tuple[float, ...] = ()
    """Medians of the interleaved rounds, in order: shows drift."""

    __pydantic_config__ = CONFIG

    def __post_init__(self) -> None:
        if not self.median_us > 0:
            raise ValueError(f"latency must be positive, got {self.median_us}")
        if not self.samples:
            raise ValueError("latency needs its raw samples")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The first differing elements of a wrong result, for the writer's repair."""

    output: int
    index: tuple[int, ...]
    expected: float | None
    actual: float | None
    """None where the value is NaN or infinite (the message says which)."""
    allowed: float | None = None

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Correctness:
    """Largest errors over all trials, against the float64 reference."""

    max_abs_error: float
    max_rel_error: float
    """Relative to the root mean square of the reference output."""
    tolerance: dict[str, float]
    """The bound that applied: ``atol``, ``rtol``, and what it was derived from."""
    trials: int
    precision_class: str
    """The class the candidate really used: ``strict``, ``tf32``, ``half`` or ``none``."""
    mismatches: tuple[Mismatch, ...] = ()
    mismatch_share: float = 0.0
    families: dict[str, bool] = field(default_factory=dict)
    """Input family -> passed."""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityCheck:
    """One check of the referee, by stable id. ``passed`` None = could not be run (detail says)."""

    check: str
    passed: bool | None
    detail: str = ""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Energy of one call, in joules."""

    joules: float
    ci95_j: tuple[float, float]
    idle_watts: float | None = None
    average_watts: float | None = None
    window_s: float | None = None
    meter: str = ""
    power_limited: bool | None = None
    """True: the board lowered its clocks to stay within its power limit."""
    dynamic_joules: float | None = None
    """Without the power the idle device draws anyway."""
    windows_j: tuple[float, ...] = ()
    """Joules of one call in each window of seconds."""
    sm_clock_mhz: float | None = None
    temperature_c: tuple[float, float] | None = None
    """In the first and the last window."""
    notes: tuple[str, ...] = ()

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The referee's verdict on one candidate."""

    status: Status
    stage: Stage
    message: str
    """What a writer can act on; one line when all is well."""
    speedup: float | None = None
    """Eager baseline median over candidate median; present only when status is ``ok``."""
    speedup_ci95: tuple[float, float] | None = None
    baselines: dict[str, Latency] = field(default_factory=dict)
    """By name: ``eager``, ``compile``."""
    latency: Latency | None = None
    correctness: Correctness | None = None
    integrity: tuple[IntegrityCheck, ...] = ()
    energy: Energy | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    verdicts: dict[str, str] = field(default_factory=dict)
    """``official`` and ``strict`` status side by side."""
    source_hash: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)
    """Seeds, weights policy, warnings, limits: what is needed to judge or repeat the number."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time of each stage of the evaluation."""
    checks: Literal["fast", "full"] = "full"

    __pydantic_config__ = CONFIG

    def __post_init__(self) -> None:
        accepted = self.status is Status.OK
        if accepted and (self.latency is None or self.correctness is None or self.speedup is None):
            raise ValueError("an accepted outcome needs latency, correctness and speedup")
        if not accepted and self.speedup is not None:
            raise ValueError(f"a {self.status.value} outcome must not carry a speedup")
        if accepted and self.stage is not Stage.DONE:
            raise ValueError("an accepted outcome has stage 'done'")
        if accepted and any(check.passed is False for check in self.integrity):
            raise ValueError("an accepted outcome must not carry a failed integrity check")
        if not accepted and not self.message:
            raise ValueError("a failed outcome needs a message the writer can act on")

    @property
    def ok(self) -> bool:
        """True if the candidate was accepted."""
        return self.status is Status.OK
