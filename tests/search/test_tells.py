"""Who wins the second measurement: the fastest, unless noise alone says so."""

from __future__ import annotations

import dataclasses

from tests.loop.simulated import accepted, failure

from kernelpro.schema.outcome import Outcome, Stage, Status
from kernelpro.search.tells import winner_id


def timed(speedup: float, low: float, high: float) -> Outcome:
    return dataclasses.replace(accepted(speedup, ""), speedup_ci95=(low, high))


def test_a_clear_lead_wins() -> None:
    found = {"slow": timed(2.0, 1.9, 2.1), "fast": timed(3.0, 2.7, 3.3)}
    assert winner_id(found, "latency") == "fast"


def test_a_lucky_measurement_does_not_beat_a_sure_one() -> None:
    found = {"lucky": timed(2.3, 0.8, 4.0), "sure": timed(2.1, 2.0, 2.2)}
    assert winner_id(found, "latency") == "sure"


def test_what_does_not_tie_with_the_fastest_is_out_however_sure() -> None:
    found = {"lucky": timed(2.3, 1.8, 4.0), "sure": timed(1.5, 1.49, 1.51)}
    assert winner_id(found, "latency") == "lucky"


def test_no_survivor_no_winner() -> None:
    assert winner_id({"x": failure(Status.TIMEOUT, Stage.RUN)}, "latency") is None
    assert winner_id({}, "energy") is None
