"""What a writer is told before the next attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelpro.schema.codec import CONFIG

Arm = Literal["none", "raw", "full"]
"""Feedback arm: nothing, raw counters, or the tools' findings (the default)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidanceItem:
    """One piece of advice."""

    tool: str
    """Tool id, or the failed status (``build_error`` ...) for repair guidance."""
    title: str
    body: str
    moves: tuple[str, ...] = ()
    expected_gain: tuple[float, float] = (1.0, 1.0)

    __pydantic_config__ = CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Guidance:
    """Ordered advice, ready to read: first is what to do first."""

    arm: Arm
    text: str
    items: tuple[GuidanceItem, ...] = ()
    near_roofline: bool = False
    """True if the kernel is at its attainable limit and the text says so."""

    __pydantic_config__ = CONFIG
