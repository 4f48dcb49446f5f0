"""Lessons that outlive a run: what a move did, on which kind of kernel, in which state."""

from __future__ import annotations

from dataclasses import dataclass

from kernelpro.schema.codec import CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One move's record on one device, operator family and bottleneck, over all runs."""

    device: str
    """Name of the device it was learnt on."""
    family: str
    """Operator family: ``matmul``, ``reduction`` or ``elementwise``."""
    bottleneck: str
    """Roofline class of the version the move was made on (``memory``, ``latency`` ...)."""
    finding: str
    """Tool id of the first finding on that version; empty if there was none."""
    move: str
    gained: int
    """Times it was faster beyond the measured noise."""
    futile: int
    """Times it ran and was not."""
    failed: int
    """Times the candidate was not accepted."""
    gain: float | None
    """Geometric mean of the speed-up over the parent, over all accepted ones; None if none was."""
    runs: int
    """Runs that contributed."""

    __pydantic_config__ = CONFIG

    @property
    def balance(self) -> int:
        """Gains less disappointments."""
        return self.gained - self.futile - self.failed
