"""Names and reasons as every front end spells them."""

from __future__ import annotations

from collections.abc import Iterable

from kernelpro.schema.labels import LABELS
from kernelpro.schema.outcome import Status

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
STOP_WORD = {
    "budget_evaluations": "the evaluation budget was used up",
    "budget_time": "the time budget was used up",
    "budget_cost": "the cost budget was used up",
    "target_met": "the target speed-up was met",
    "near_roofline": "the best kernel is at its roofline",
    "stagnation": "nothing better had come for a while",
    "exhausted": "the writer had nothing left to try",
    "interrupted": "it was interrupted",
    "error": "an error stopped it",
}
STAGE_DOING = {
    "write": "writing",
    "static": "checking the source",
    "start": "starting a process",
    "load": "building and loading",
    "verify": "verifying",
    "controls": "verifying",
    "time": "timing",
    "integrity": "checking integrity",
    "profile": "profiling",
    "finalists": "measuring the finalists again",
}
"""What an attempt is in, by the names that :mod:`kernelpro.stages` reports."""
SIDE_WORD = {"eager": "eager PyTorch", "compile": "torch.compile", "candidate": "this kernel"}


def status_word(status: Status | None) -> str:
    """A status in words."""
    return STATUS_WORD[status] if status is not None else "no verdict"


def stop_word(reason: str | None) -> str:
    """Why a run ended, as the end of a sentence."""
    return STOP_WORD.get(reason or "", plain(reason or "it has not ended"))


def label_words(labels: Iterable[str]) -> str:
    """What the task lint found, as one clause."""
    return "; ".join(LABELS.get(label, plain(label)) for label in labels)


def plain(name: str) -> str:
    """A stable id as words: ``cpu_memory_bandwidth`` -> ``cpu memory bandwidth``."""
    return name.replace("_", " ")
