"""Facts about how a candidate ran; what is missing is listed with the reason, never zero."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from kernelpro.schema.build import KernelResources
from kernelpro.schema.codec import CONFIG

KernelOrigin = Literal["candidate", "library", "framework", "copy", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One measured quantity. Names follow the profiler's own where it has one."""

    value: float
    unit: str = ""
    source: str = ""
    """``ncu``, ``sass``, ``objdump``, ``vectoriser``, ``perf``, ``timer``, ``graph`` ..."""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Evidence that could not be had, and why."""

    what: str
    reason: str
    remedy: str = ""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    """Cost attributed to one source line."""

    file: str
    line: int
    text: str = ""
    values: dict[str, float] = field(default_factory=dict)

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProfile:
    """One kernel (GPU) or one native function (CPU)."""

    name: str
    origin: KernelOrigin = "unknown"
    duration_us: float | None = None
    launches: int = 1
    time_share: float | None = None
    """Share of the profiled program's device time, 0..1."""
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    metrics: dict[str, Metric] = field(default_factory=dict)
    instructions: dict[str, float] = field(default_factory=dict)
    """Static instruction counts by class; keys are documented by the collector."""
    resources: KernelResources | None = None
    source_lines: tuple[SourceLine, ...] = ()
    notes: tuple[str, ...] = ()
    """Compiler remarks, for example why a loop was not vectorised."""
    rules: tuple[dict[str, Any], ...] = ()
    """The profiler's own rule results, kept for comparison."""

    __pydantic_config__ = CONFIG

    def value(self, name: str) -> float | None:
        """The value of metric ``name``; None if it is missing (see ``Profile.missing``)."""
        metric = self.metrics.get(name)
        return None if metric is None else metric.value


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemProfile:
    """The call as the whole system saw it: launches, gaps, copies, synchronisation."""

    metrics: dict[str, Metric] = field(default_factory=dict)
    operators: tuple[dict[str, Any], ...] = ()
    """Framework operators inside the call: name, calls, self time in microseconds."""

    __pydantic_config__ = CONFIG

    def value(self, name: str) -> float | None:
        """The value of metric ``name``; None if it is missing."""
        metric = self.metrics.get(name)
        return None if metric is None else metric.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Everything the collectors saw of one candidate or report."""

    device: str
    """Device id or, for a saved report, the device name in it."""
    kernels: tuple[KernelProfile, ...]
    system: SystemProfile | None = None
    missing: tuple[Missing, ...] = ()
    selected: str = ""
    """Which kernel is the candidate's own, and how that was decided."""
    seconds: float = 0.0
    """Wall time spent profiling."""
    tools: dict[str, str] = field(default_factory=dict)
    """Profiler name -> version."""

    __pydantic_config__ = CONFIG
