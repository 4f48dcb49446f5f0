"""The resolved configuration of a run: one frozen object, no None-means-inherit below it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from kernelpro.schema.codec import CONFIG
from kernelpro.schema.guidance import Arm
from kernelpro.schema.search import Objective

SandboxMode = Literal["strict", "best-effort", "off"]
CheckLevel = Literal["fast", "full"]
Verdict = Literal["official", "strict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Where a run stops. None = no limit of that kind; at least one must be set."""

    evaluations: int | None = 30
    minutes: float | None = None
    target_speedup: float | None = None
    cost_usd: float | None = None
    tokens: int | None = None
    stagnation: int | None = None
    """Stop after this many evaluations without a better candidate."""
    stop_at_roofline: bool = True
    """Stop when the best candidate is near the attainable speed. Comparisons of searches set it
    off: one lucky measurement would end an arm early, and the arms' budgets would differ."""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig:
    """How the referee works."""

    correctness_trials: int = 3
    timing_rounds: int = 8
    """Interleaved rounds of baseline and candidate."""
    samples_per_round: int = 4
    min_time_ms: float = 60.0
    """Least measured time per side before the interval is believed."""
    target_ci: float = 0.01
    """Stop early when the median's half-interval is below this share."""
    max_time_s: float = 12.0
    """Timing stops here even if the interval is wider (the record says so)."""
    build_timeout_s: float = 180.0
    run_timeout_s: float = 60.0
    """Deadline of one block of calls."""
    memory_limit_mb: int | None = None
    """Address-space limit of the candidate; None = three quarters of the machine's memory."""
    checks: CheckLevel = "full"
    verdict: Verdict = "strict"
    sandbox: SandboxMode = "best-effort"
    compile_baseline: bool = True
    threads: int | None = None
    """CPU threads on both sides; None = all usable cores."""
    allow_library_calls: bool = True
    energy: bool = False
    """Measure the joules of accepted candidates and of eager, where the device has a counter."""
    inputs: Literal["device", "cpu"] = "device"
    """Where random inputs are drawn; ``cpu`` reproduces KernelBench's bits."""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Everything a run was started with; stored in it, and what ``--resume`` goes on with."""

    device: str
    writer: str = "playbook"
    """``playbook``, ``external``, ``replay:RUN`` or ``provider:model``."""
    models: dict[str, str] = field(default_factory=dict)
    """Role or mode of an LLM writer -> ``provider:model`` in place of ``writer``, or ``none``."""
    writer_options: dict[str, Any] = field(default_factory=dict)
    """Settings of the writer: see ``proposers.llm.settings.Settings``."""
    search: str = "mcts"
    search_options: dict[str, Any] = field(default_factory=dict)
    objective: Objective = "latency"
    max_slowdown: float | None = None
    """With objective ``energy``: candidates slower than the fastest by more than this share are
    not picked (0.02 = 2 %)."""
    arm: Arm = "full"
    memory: bool = True
    library: str | None = None
    """File of lessons across runs, read at the start and added to at the end; None = neither."""
    proactive: bool = True
    seed: int = 0
    parallel: int = 1
    """Asks in flight."""
    budget: Budget = field(default_factory=Budget)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    finalists: int = 3
    """Top candidates measured again, interleaved, before a winner is named."""

    __pydantic_config__ = CONFIG
