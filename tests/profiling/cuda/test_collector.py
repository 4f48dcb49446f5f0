"""What the collector makes of several sources, as far as no GPU is needed."""

from __future__ import annotations

import pytest

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.profiling.cuda.collector import without_the_profilers_share
from kernelpro.schema.outcome import Correctness, Latency, Outcome, Stage, Status
from kernelpro.schema.profile import Metric, SystemProfile

NAME = m.SYSTEM_LAUNCH_BOUND_SHARE


def system(share: float) -> SystemProfile:
    return SystemProfile(metrics={NAME: Metric(value=share, source="timeline")})


def outcome(median_us: float, **evidence: float) -> Outcome:
    latency = Latency(
        median_us=median_us, ci95_us=(median_us, median_us), samples=(median_us,),
        timer="cuda_event", rounds=(median_us,), kind="device", device_median_us=median_us,
    )  # fmt: skip
    return Outcome(
        status=Status.OK, stage=Stage.DONE, message="", speedup=2.0, speedup_ci95=(1.9, 2.1),
        baselines={"eager": latency}, latency=latency, evidence=evidence,
        correctness=Correctness(max_abs_error=0.0, max_rel_error=0.0, tolerance={}, trials=1,
                                precision_class="strict"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "device_us", "issue_us", "share"),
    [
        (0.5, 130.0, 20.0, 0.0),  # the profiler's own slowness: the queue never runs empty
        (0.9, 10.0, 40.0, 0.75),  # more launches than work, the profiler made it worse
        (0.3, 10.0, 40.0, 0.3),  # what was seen is less than what could be
    ],
)
def test_late_launches_are_bounded_by_what_issuing_costs(
    seen: float, device_us: float, issue_us: float, share: float
) -> None:
    bounded = without_the_profilers_share(system(seen), outcome(device_us, issue_us=issue_us))
    assert bounded is not None and bounded.metrics[NAME].value == pytest.approx(share)


def test_without_the_evaluations_figures_nothing_changes() -> None:
    before = system(0.5)
    assert without_the_profilers_share(before, None) is before
    assert without_the_profilers_share(before, outcome(10.0)) is before
    assert without_the_profilers_share(None, outcome(10.0, issue_us=5.0)) is None
