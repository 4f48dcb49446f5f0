"""Near the roofline means near it for the whole call, with nothing left out."""

from __future__ import annotations

import pytest

from kernelpro.loop.admission import admit
from kernelpro.loop.stopping import attained_share
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.finding import Diagnosis, KernelDiagnosis
from kernelpro.schema.proposal_request import Attempt

from .simulated import SOURCE, accepted


def attempt(*kernels: tuple[float | None, float | None]) -> Attempt:
    """An attempt of 100 us whose kernels have these durations and headrooms."""
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
        ([(100.0, 1.0)], 1.0),
        ([(100.0, 1.25)], 0.8),
        ([(50.0, 1.0)], 0.5),
        ([(50.0, 1.0), (50.0, 2.0)], 0.75),
        ([(120.0, 1.0)], 1.0),
        ([(50.0, None), (50.0, 1.0)], None),
        ([(None, 1.0)], None),
        ([], None),
    ],
)
def test_attained_share(
    kernels: list[tuple[float | None, float | None]], share: float | None
) -> None:
    assert attained_share(attempt(*kernels)) == share
