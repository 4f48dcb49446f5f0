"""A micro-profiling tool's contract: needs, trigger, advice. Pure functions of records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from kernelpro.schema.finding import Finding, RooflineClass
from kernelpro.schema.graph import Graph
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.profile import KernelProfile, Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage1:
    """The roofline class and how sure it is: decides which tools run."""

    roofline_class: RooflineClass
    confidence: float
    headroom: float | None
    """Time now over time at the attainable roofline; None = not known."""
    explanation: str
    floor_us: float | None = None
    """Attainable time: the larger of bytes over bandwidth and FLOPs over peak."""
    analytic: RooflineClass = "unknown"
    measured: RooflineClass = "unknown"
    near_roofline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInput:
    """Everything a tool may look at."""

    kernel: KernelProfile
    profile: Profile
    stage1: Stage1
    device: Device | None
    """None for a saved report that does not say."""
    peaks: Peaks | None
    graph: Graph | None
    """None when diagnosing a report without its problem."""


class Tool(Protocol):
    """One micro-profiling tool. Registered by its id in ``diagnosis.tools.TOOLS``."""

    id: str
    devices: tuple[Literal["cpu", "cuda"], ...]
    needs: tuple[str, ...]
    """Metric names; if any is missing the tool returns None and is listed as not run."""
    scope: Literal["kernel", "system"]

    def examine(self, given: ToolInput) -> Finding | None:
        """A finding (rank 0), or None if there is nothing to say."""
        ...
