"""This machine: what it can do, and how fast it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernelpro import environ
from kernelpro.schema.hardware import Peaks

if TYPE_CHECKING:
    from kernelpro.hardware.check import Check

ESSENTIAL = frozenset({"python", "torch", "cache", "C++ compiler"})
"""Names of the checks without which the built-in device cannot run the loop."""


def calibrate(device: str = "auto", *, remeasure: bool = True) -> Peaks:
    """Measure the ceilings of ``device`` and keep them for later runs.

    ``remeasure`` False returns what is kept, if anything is.
    """
    from kernelpro.hardware import peaks, probe, resolve_device

    return peaks(
        probe(resolve_device(device)), cache_root=environ.cache_root(), remeasure=remeasure
    )


def doctor() -> list[Check]:
    """What kernelpro needs from this machine, each with what was found and how to mend it."""
    from kernelpro.hardware.check import doctor as examine

    return list(examine())


def unusable(checks: Sequence[Check]) -> bool:
    """True if nothing can run here: a part that every device needs is missing or broken."""
    return any(check.name in ESSENTIAL and not check.ok for check in checks)
