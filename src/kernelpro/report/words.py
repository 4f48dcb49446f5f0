"""Numbers and names as the report spells them."""

from __future__ import annotations

from kernelpro.schema.outcome import Status
from kernelpro.text import format_us

STATUS_WORD = {
    Status.OK: "accepted",
    Status.REJECTED: "rejected",
    Status.BUILD_ERROR: "build error",
    Status.LOAD_ERROR: "load error",
    Status.RUNTIME_ERROR: "runtime error",
    Status.TIMEOUT: "timeout",
    Status.OUT_OF_MEMORY: "out of memory",
    Status.WRONG_RESULT: "wrong result",
    Status.CHEATING: "cheating",
}
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
STOP_WORD = {
    "budget_evaluations": "the evaluation budget was used up",
    "budget_time": "the time budget was used up",
    "budget_cost": "the cost budget was used up",
    "target_met": "the target speed-up was met",
    "near_roofline": "the best kernel is at its roofline",
    "stagnation": "nothing better had come for a while",
    "exhausted": "the writer had nothing left to try",
    "interrupted": "it was interrupted",
    "error": "of an error",
}
SIDE_WORD = {"eager": "eager PyTorch", "compile": "torch.compile", "candidate": "this kernel"}


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


def status_word(status: Status | None) -> str:
    """A status in words."""
    return STATUS_WORD[status] if status is not None else "no verdict"


def plain(name: str) -> str:
    """A stable id as words: ``cpu_memory_bandwidth`` -> ``cpu memory bandwidth``."""
    return name.replace("_", " ")
