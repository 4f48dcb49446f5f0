"""Near the roofline means near it for the whole call, with nothing left out."""

from __future__ import annotations

import dataclasses

import pytest

from kernelpro.loop.admission import admit
from kernelpro.loop.spending import Spending
from kernelpro.loop.stopping import attained_share, reason_to_stop
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.config import Budget
from kernelpro.schema.finding import Diagnosis, KernelDiagnosis
from kernelpro.schema.proposal_request import Attempt

from .simulated import SOURCE, accepted


def attempt(*kernels: tuple[float | None, float | None]) -> Attempt:
    """An attempt of 100 us, at most 101, whose kernels have these durations and headrooms."""
    source = SOURCE.format(note="x")
    proposal = Proposal(source=source, mode="initial", title="x")
    diagnosis = Diagnosis(
        kernels=tuple(
            KernelDiagnosis(
                kernel="k", roofline_class="memory", confidence=1.0, duration_us=duration,
                findings=(), headroom=headroom,
            )
            for duration, headroom in kernels
        )
    )  # fmt: skip
    candidate = admit(proposal, node_id="n1", parent_id=None).candidate
    return Attempt(candidate=candidate, outcome=accepted(1.0, source), diagnosis=diagnosis)


@pytest.mark.parametrize(
    ("kernels", "share"),
    [
        ([(100.0, 1.0)], 100 / 101),
        ([(100.0, 1.25)], 80 / 101),
        ([(50.0, 1.0)], 50 / 101),
        ([(50.0, 1.0), (50.0, 2.0)], 75 / 101),
        ([(120.0, 1.0)], 1.0),
        ([(50.0, None), (50.0, 1.0)], None),
        ([(None, 1.0)], None),
        ([], None),
    ],
)
def test_attained_share(
    kernels: list[tuple[float | None, float | None]], share: float | None
) -> None:
    assert attained_share(attempt(*kernels)) == pytest.approx(share)


@pytest.mark.parametrize(("speedup", "reason"), [(1.0, None), (1.1, "near_roofline")])
def test_at_the_roofline_only_a_winner_ends_the_run(speedup: float, reason: str | None) -> None:
    best = attempt((100.0 / speedup, 1.0))
    best = dataclasses.replace(best, outcome=accepted(speedup, best.candidate.proposal.source))
    state = State(best)
    ended = reason_to_stop(state, elapsed_s=0.0)  # type: ignore[arg-type]
    assert (ended[0] if ended else None) == reason


def test_a_comparison_goes_on_at_the_roofline() -> None:
    best = attempt((100.0 / 1.1, 1.0))
    best = dataclasses.replace(best, outcome=accepted(1.1, best.candidate.proposal.source))
    state = State(best)
    state.budget = Budget(stop_at_roofline=False)
    assert reason_to_stop(state, elapsed_s=0.0) is None  # type: ignore[arg-type]


def test_a_lucky_measurement_is_not_at_the_roofline() -> None:
    sure = attempt((100.0, 1.0))
    latency = sure.outcome.latency
    assert latency is not None
    noisy = dataclasses.replace(latency, ci95_us=(80.0, 200.0))
    lucky = dataclasses.replace(sure, outcome=dataclasses.replace(sure.outcome, latency=noisy))
    assert attained_share(lucky) == 0.5


class State:
    """As much of a run's state as the decision reads."""

    def __init__(self, best: Attempt) -> None:
        self.budget = Budget()
        self.spending = Spending()
        self._best = best

    def best(self) -> Attempt:
        return self._best
