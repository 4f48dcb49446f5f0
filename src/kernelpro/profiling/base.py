"""A collector's contract: everything one kind of device can say about a candidate's run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kernelpro.registry import Registry
from kernelpro.schema.graph import Graph
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.problem import Problem
from kernelpro.schema.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is to be profiled, and what is already known about it."""

    problem: Problem
    source: str
    """The candidate's file."""
    build_dir: Path
    """Its private build directory, with ``manifest.jsonl``."""
    device: Device
    peaks: Peaks | None
    outcome: Outcome | None
    graph: Graph | None
    more: bool = False
    """Another candidate is likely to follow on this machine."""


class Collector(Protocol):
    """Collects a profile on one kind of device. Constructed with no arguments."""

    def collect(self, subject: Subject) -> Profile:
        """The facts; what could not be had is listed in ``missing``. Never raises for a
        candidate that misbehaves while it is profiled."""
        ...


COLLECTORS = Registry(
    "profiler",
    {
        "cpu": "kernelpro.profiling.cpu.collector:CpuCollector",
        "cuda": "kernelpro.profiling.cuda.collector:CudaCollector",
    },
)
"""Device kind -> class."""
