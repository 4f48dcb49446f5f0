"""Numbers as the report spells them, and statuses short enough for the tree."""

from __future__ import annotations

from collections.abc import Iterable

from kernelpro.schema.outcome import Status
from kernelpro.text import format_us
from kernelpro.views.words import plain

STATUS_SHORT = {
    Status.OK: "ok",
    Status.REJECTED: "reject",
    Status.BUILD_ERROR: "build",
    Status.LOAD_ERROR: "load",
    Status.RUNTIME_ERROR: "crash",
    Status.TIMEOUT: "time",
    Status.OUT_OF_MEMORY: "memory",
    Status.WRONG_RESULT: "wrong",
    Status.CHEATING: "cheat",
}


def duration(microseconds: float) -> str:
    """Three digits and a unit."""
    return format_us(microseconds).replace(" us", " µs")


def times(ratio: float) -> str:
    """A speed-up: three significant digits."""
    digits = 2 if ratio < 10 else 1 if ratio < 100 else 0
    return f"{ratio:.{digits}f}×"


def seconds(value: float) -> str:
    """Wall time as a person says it."""
    if value < 9.95:
        return f"{value:.1f} s"
    if value < 90:
        return f"{value:.0f} s"
    minutes = round(value / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def path_words(names: Iterable[str]) -> str:
    """Stable ids as a readable list."""
    return ", ".join(plain(name) for name in names)
