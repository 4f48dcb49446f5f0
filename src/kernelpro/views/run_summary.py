"""A run in one record: what was found, how sure it is, and why it ended."""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

from kernelpro.schema.outcome import Outcome
from kernelpro.views.run import Run

WIDE_INTERVAL = 1.5
"""High end over low end of a speed-up's 95 % interval from which on the number is said to be rough
(chosen: beyond it the first digit is in doubt; quiet machines stay below 1.1)."""


class RunSummary(NamedTuple):
    """The headline of a run."""

    run_id: str
    problem: str
    origin: str
    device: str
    device_name: str
    writer: str
    search: str
    state: Literal["running", "stopped", "empty"]
    """``running`` also stands for a run that died: the store cannot tell them apart."""
    stop_reason: str | None
    stop_detail: str
    evaluations: int
    statuses: dict[str, int]
    best_id: str | None
    best_title: str
    keep_eager: bool
    """True if the run ended without a candidate faster than eager beyond the noise; ``best_id``
    is then the nearest miss, if any was accepted."""
    speedup: float | None
    """Over eager."""
    speedup_ci95: tuple[float, float] | None
    loose: bool
    """True if the interval is too wide for the number to be quoted (``WIDE_INTERVAL``)."""
    speedup_over_compile: float | None
    latency_us: float | None
    eager_us: float | None
    compile_us: float | None
    """In this session's terms: eager's latency over the speed-up of torch.compile."""
    remeasured: bool
    """True if the best was measured again, interleaved, on fresh inputs, after the search."""
    checks_passed: int
    checks_failed: int
    checks_not_run: int
    precision_class: str | None
    labels: tuple[str, ...]
    elapsed_s: float


def run_summary(run: Run) -> RunSummary:
    """The summary of ``run`` so far."""
    started, stopped, best = run.started, run.stopped, run.best_id
    outcome = run.outcome(best) if best else None
    checks = Counter(check.passed for check in outcome.integrity) if outcome else Counter()
    statuses = Counter(f.status.value for f in run.facts.values() if f.status)
    return RunSummary(
        run_id=started.run_id if started else "", problem=started.problem.name if started else "",
        origin=started.problem.origin if started else "",
        device=started.config.device if started else "",
        device_name=started.device.name if started else "",
        writer=started.config.writer if started else "",
        search=started.config.search if started else "",
        state="empty" if started is None else "stopped" if stopped else "running",
        stop_reason=stopped.reason if stopped else None,
        stop_detail=stopped.detail if stopped else "",
        evaluations=len(run.facts), statuses=dict(statuses), best_id=best,
        best_title=run.facts[best].title if best else "",
        keep_eager=stopped is not None and not _beats_eager(outcome),
        speedup=outcome.speedup if outcome else None,
        speedup_ci95=outcome.speedup_ci95 if outcome else None,
        loose=is_loose(outcome),
        speedup_over_compile=over_compile(outcome), latency_us=_median(outcome, "candidate"),
        eager_us=_median(outcome, "eager"), compile_us=compile_us(outcome),
        remeasured=best in run.remeasured, checks_passed=checks[True],
        checks_failed=checks[False], checks_not_run=checks[None],
        precision_class=(outcome.correctness.precision_class
                         if outcome and outcome.correctness else None),
        labels=started.labels if started else (),
        elapsed_s=stopped.elapsed_s if stopped else sum(f.seconds for f in run.facts.values()),
    )  # fmt: skip


def is_loose(outcome: Outcome | None) -> bool:
    """Whether the speed-up's interval spans more than ``WIDE_INTERVAL`` from end to end."""
    if outcome is None or outcome.speedup_ci95 is None:
        return False
    low, high = outcome.speedup_ci95
    return low <= 0 or high / low > WIDE_INTERVAL


def _beats_eager(outcome: Outcome | None) -> bool:
    """True if the speed-up exceeds 1 beyond its interval, the loop's own rule for a winner."""
    if outcome is None or outcome.speedup is None:
        return False
    return (outcome.speedup_ci95[0] if outcome.speedup_ci95 else outcome.speedup) > 1.0


def _median(outcome: Outcome | None, side: str) -> float | None:
    if outcome is None:
        return None
    latency = outcome.latency if side == "candidate" else outcome.baselines.get(side)
    return latency.median_us if latency else None


def compile_over_eager(outcome: Outcome | None) -> float | None:
    """Speed-up of torch.compile over eager, interleaved with each other where they were."""
    if outcome is None:
        return None
    measured = outcome.evidence.get("compile_speedup_over_eager")
    if isinstance(measured, int | float) and measured > 0:
        return float(measured)
    eager, compiled = _median(outcome, "eager"), _median(outcome, "compile")
    return eager / compiled if eager and compiled else None


def over_compile(outcome: Outcome | None) -> float | None:
    """Speed-up over torch.compile: both speed-ups over eager, each from its own interleaving."""
    compiled = compile_over_eager(outcome)
    if outcome is None or outcome.speedup is None or compiled is None:
        return None
    return outcome.speedup / compiled


def compile_us(outcome: Outcome | None) -> float | None:
    """Latency of torch.compile in the terms of the session that timed the candidate."""
    eager, ratio = _median(outcome, "eager"), compile_over_eager(outcome)
    return eager / ratio if eager and ratio else None
