"""Measured a second time: the top few, and whoever the noise does not tell from the first."""

from __future__ import annotations

from kernelpro.loop.finalists import field_size
from kernelpro.schema.outcome import Stage, Status
from kernelpro.schema.search import Tell


def tells(*speeds: tuple[float, float]) -> list[Tell]:
    return [
        Tell(ask_id=n, node_id=f"n{n}", status=Status.OK, stage=Stage.DONE, speedup=speed,
             speedup_ci95=(speed * (1 - noise), speed * (1 + noise)))
        for n, (speed, noise) in enumerate(speeds)
    ]  # fmt: skip


def test_clear_winners_need_no_more_than_asked_for() -> None:
    assert field_size(tells((4.0, 0.01), (3.0, 0.01), (2.0, 0.01), (1.0, 0.01)), 2) == 2
    assert field_size(tells((4.0, 0.01)), 3) == 1
    assert field_size([], 3) == 0


def test_ties_with_the_first_are_measured_again_up_to_a_limit() -> None:
    noisy = tells(*((2.0 - 0.01 * n, 0.1) for n in range(9)))
    assert field_size(noisy, 3) == 6
    assert field_size(noisy[:4], 3) == 4
    apart = tells((2.0, 0.1), (1.95, 0.1), (1.9, 0.1), (1.0, 0.01), (0.9, 0.01))
    assert field_size(apart, 2) == 3, "the fourth does not tie"
