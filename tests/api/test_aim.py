"""An energy objective needs a counter before a run starts, not after."""

from __future__ import annotations

import pytest

from kernelpro.api.aim import resolve_aim
from kernelpro.cli.output import share
from kernelpro.energy import base
from kernelpro.errors import MachineError, UserError
from kernelpro.schema.config import EvaluationConfig
from kernelpro.schema.profile import Missing

CONFIG = EvaluationConfig()


@pytest.fixture(autouse=True)
def no_counter(monkeypatch):
    lacking = Missing(what="energy", reason="no counter", remedy="a real machine")
    monkeypatch.setattr(base, "open_sensor", lambda device: lacking)


def test_latency_measures_no_energy():
    assert resolve_aim("latency", None, CONFIG, "cpu") == ("latency", CONFIG)


def test_a_slowdown_limit_asks_for_energy_and_that_for_a_counter():
    for objective in ("latency", "energy"):
        with pytest.raises(MachineError, match="no counter"):
            resolve_aim(objective, 0.02, CONFIG, "cpu")
    aim = resolve_aim("latency", 0.02, CONFIG, None)
    assert aim.objective == "energy" and aim.evaluation.energy


def test_speed_first_goes_on_without_a_counter():
    aim = resolve_aim("lexicographic", None, CONFIG, "cpu")
    assert aim.objective == "lexicographic" and aim.evaluation.energy


@pytest.mark.parametrize(("objective", "slack"), [("edp", 0.02), ("energy", 1.5), ("energy", -0.1)])
def test_what_does_not_fit_is_refused(objective, slack):
    with pytest.raises(UserError):
        resolve_aim(objective, slack, CONFIG, None)


def test_shares_on_the_command_line():
    assert share("2%", "--x") == pytest.approx(0.02) == share("0.02", "--x")
    assert share(None, "--x") is None
    for text in ("two", "200%", "-1%", ""):
        with pytest.raises(UserError, match="--x must be a share"):
            share(text, "--x")
