"""Builds the Outcome of one evaluation from what its steps left behind. Decides nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from kernelpro.evaluation.examination import Examination
from kernelpro.evaluation.side import Side
from kernelpro.evaluation.statistics import Estimate
from kernelpro.isolation.base import Loaded, Subject, SubjectFailure
from kernelpro.schema.outcome import Energy, Latency, Outcome, Stage, Status
from kernelpro.stages import entering
from kernelpro.text import content_hash, printable, truncate_middle

LOG_TAIL = 1500
"""Characters of a dead subject's output shown to the writer."""


@dataclass(slots=True)
class Case:
    """One candidate on its way through the referee."""

    source: str
    checks: Literal["fast", "full"]
    seed: int | None = None
    subject: Subject | None = None
    loaded: Loaded | None = None
    examination: Examination | None = None
    side: Side | None = None
    failure: SubjectFailure | None = None
    speedup: Estimate | None = None
    latency: Latency | None = None
    energy: Energy | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)

    @property
    def strict_failure(self) -> str:
        """Under verdict ``official``: why the strict verdict is worse; empty if it is not."""
        return "" if self.examination is None else self.examination.strict_failure

    @property
    def source_hash(self) -> str:
        """Content hash of the candidate's source."""
        return content_hash(self.source)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the time spent inside to ``seconds[name]``."""
        entering(name)
        begin = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - begin
            self.seconds[name] = self.seconds.get(name, 0.0) + spent

    def warn(self, text: str) -> None:
        """A remark that belongs to the number."""
        self.evidence.setdefault("warnings", []).append(text)

    def close(self) -> None:
        """End the candidate's process."""
        if self.subject is not None:
            self.subject.close()


def outcome(
    case: Case,
    *,
    baselines: dict[str, Latency],
    environment: dict[str, Any],
) -> Outcome:
    """The record of ``case``."""
    failure = case.failure
    status = Status.OK if failure is None else failure.status
    stage = Stage.DONE if failure is None else failure.stage
    examination = case.examination
    correctness = examination.tally.correctness() if examination is not None else None
    estimate = case.speedup if status is Status.OK else None
    case.seconds["total"] = time.perf_counter() - case.started
    return Outcome(
        status=status,
        stage=stage,
        message=_message(case, estimate),
        speedup=estimate.value if estimate else None,
        speedup_ci95=(estimate.low, estimate.high) if estimate else None,
        baselines=baselines if case.latency is not None else {},
        latency=case.latency,
        energy=case.energy if status is Status.OK else None,
        correctness=correctness,
        integrity=examination.findings.result() if examination is not None else (),
        environment=environment,
        verdicts=_verdicts(case, status),
        source_hash=case.source_hash,
        evidence=case.evidence,
        seconds={name: round(value, 4) for name, value in case.seconds.items()},
        checks=case.checks,
    )


def _message(case: Case, estimate: Estimate | None) -> str:
    if case.failure is not None:
        text = case.failure.message
        if case.failure.log.strip():
            tail = truncate_middle(printable(case.failure.log.strip()), LOG_TAIL, head_share=0.3)
            text += f"\nIts output:\n{tail}"
        return text
    assert estimate is not None
    text = f"{estimate.value:.3g}x eager (95 % interval {estimate.low:.3g} to {estimate.high:.3g})"
    return f"{text}; the strict verdict differs: {case.strict_failure}" if (
        case.strict_failure) else text  # fmt: skip


def _verdicts(case: Case, status: Status) -> dict[str, str]:
    """Both verdicts: they differ only where an answer was wrong for one of them."""
    examination = case.examination
    strict = Status.WRONG_RESULT if case.strict_failure else status
    official = status
    if examination is not None and examination.official is not None:
        if not examination.official:
            official = Status.WRONG_RESULT
        elif status is Status.WRONG_RESULT:
            official = Status.OK
    return {"official": official.value, "strict": strict.value}
