"""Reads values out of a ``ToolInput``: one lookup for kernel, system and SASS figures alike."""

from __future__ import annotations

from collections.abc import Iterable

from kernelpro.diagnosis.base import ToolInput
from kernelpro.schema.finding import Evidence
from kernelpro.schema.profile import Metric

SASS_PREFIX = "sass."
"""``sass.<class>`` reads ``KernelProfile.instructions``: counted, so an absent class is zero."""


def metric(given: ToolInput, name: str) -> Metric | None:
    """Metric ``name`` of the kernel, else of the system; None if it is missing."""
    found = given.kernel.metrics.get(name)
    if found is None and given.profile.system is not None:
        found = given.profile.system.metrics.get(name)
    return found


def value(given: ToolInput, name: str) -> float | None:
    """The value of ``name``; None if it is missing, never zero for missing."""
    if name.startswith(SASS_PREFIX):
        counts = given.kernel.instructions
        return counts.get(name.removeprefix(SASS_PREFIX), 0.0) if counts else None
    found = metric(given, name)
    return None if found is None else found.value


def number(given: ToolInput, name: str, default: float) -> float:
    """The value of ``name``, or ``default`` where the caller has a stated reason for one."""
    found = value(given, name)
    return default if found is None else found


def absent(given: ToolInput, names: Iterable[str]) -> tuple[str, ...]:
    """Those of ``names`` that the profile does not have."""
    return tuple(name for name in names if value(given, name) is None)


def observed(
    given: ToolInput, name: str, threshold: float | None = None, unit: str | None = None
) -> Evidence:
    """Evidence for a metric that is known to be present."""
    found = metric(given, name)
    shown = unit if unit is not None else ("" if found is None else found.unit)
    actual = value(given, name)
    if actual is None:
        raise ValueError(f"{name} is missing: evidence must be observed")
    return Evidence(metric=name, value=actual, threshold=threshold, unit=shown)


def call_us(given: ToolInput) -> float | None:
    """Time of the whole call in microseconds, else of the kernel.

    On a CPU a kernel's own time is its share of the call; what the problem needs is compared with
    the call.
    """
    whole = value(given, "cpu.call_us")
    return given.kernel.duration_us if whole is None else whole
