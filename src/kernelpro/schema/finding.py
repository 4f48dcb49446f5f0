"""The diagnosis record: ranked findings with evidence, cause and actions (DESIGN section 8)."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Literal

from kernelpro.schema.codec import CONFIG


class Severity(enum.StrEnum):
    """How much a finding matters. ``info`` never asks for action."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    INFO = "info"


RooflineClass = Literal["compute", "memory", "latency", "occupancy", "launch", "mixed", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One observed value against the threshold it was judged by."""

    metric: str
    value: float
    threshold: float | None = None
    unit: str = ""

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one micro-profiling tool has to say about one kernel."""

    tool: str
    severity: Severity
    rank: int
    """1 = fix this first. Tools leave 0; ``diagnose`` assigns ranks."""
    summary: str
    evidence: tuple[Evidence, ...]
    cause: str
    actions: tuple[str, ...]
    expected_gain: tuple[float, float]
    """Predicted speed-up interval, 1.0 = none; computed from the evidence."""
    missing: tuple[str, ...] = ()
    confidence: float = 1.0
    """0..1; weighs the ranking."""
    moves: tuple[str, ...] = ()
    """Stable names of code changes that answer the finding; the playbook maps them to knobs."""
    example: str = ""
    gain_source: str = ""
    """The formula behind ``expected_gain``."""

    __pydantic_config__ = CONFIG

    def __post_init__(self) -> None:
        low, high = self.expected_gain
        if not 1.0 <= low <= high:
            raise ValueError(f"expected_gain must satisfy 1 <= low <= high, got {(low, high)}")
        if self.severity is not Severity.INFO and not self.actions:
            raise ValueError(f"{self.tool}: a {self.severity.value} finding needs an action")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelDiagnosis:
    """Class and findings of one kernel."""

    kernel: str
    roofline_class: RooflineClass
    """Printed as ``class`` in JSON."""
    confidence: float
    duration_us: float | None
    findings: tuple[Finding, ...]
    headroom: float | None
    """Time now over the time at the roofline; 1.0 = there. None = not known."""
    explanation: str = ""
    time_share: float | None = None

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Kernels in order of the time they take, with the system-level findings."""

    kernels: tuple[KernelDiagnosis, ...]
    system: dict[str, Any] = field(default_factory=dict)
    system_findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()

    __pydantic_config__ = CONFIG

    def ranked(self) -> tuple[Finding, ...]:
        """All findings, system-level included, most worthwhile first."""
        found = [f for k in self.kernels for f in k.findings] + list(self.system_findings)
        return tuple(sorted(found, key=lambda f: (f.severity is Severity.INFO, f.rank)))

    def to_public(self) -> dict[str, Any]:
        """The JSON object of DESIGN section 8 (``roofline_class`` spelled ``class``)."""
        from kernelpro.schema.codec import to_jsonable

        data: dict[str, Any] = to_jsonable(self)
        for kernel in data["kernels"]:
            kernel["class"] = kernel.pop("roofline_class")
        return data
