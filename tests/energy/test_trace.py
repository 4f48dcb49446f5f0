"""A trace survives its file, and the numbers from it are the same."""

from __future__ import annotations

import pytest
from tests.energy.simulated import busy, in_turns, trace_of

from kernelpro.energy.meter import summarise
from kernelpro.energy.trace import dump_trace, load_trace


def test_a_stored_trace_gives_the_same_numbers_and_is_small():
    windows = in_turns(["work"], 4)
    trace = trace_of(busy(windows, {"work": 500.0}), windows)
    text = dump_trace(trace)
    again = load_trace(text)
    seconds = trace.readings[-1].t_s
    assert len(text) / seconds < 1500, "bytes a second"
    one, two = summarise(trace, "work"), summarise(again, "work")
    assert two.joules.value == pytest.approx(one.joules.value, rel=1e-4)
    assert two.idle_watts == pytest.approx(one.idle_watts, rel=1e-3)
    assert (again.meter, again.device, again.power_limit_w) == ("simulated", "no device", 700.0)
    assert [(w.label, w.launches) for w in again.windows] == [
        (w.label, w.launches) for w in windows
    ]


def test_storing_again_changes_nothing():
    windows = in_turns(["a", "b"], 2)
    text = dump_trace(trace_of(busy(windows, {"a": 300.0, "b": 350.0}), windows))
    assert dump_trace(load_trace(text)) == text


@pytest.mark.parametrize("text", ["[]", '{"format": 99}', "{"])
def test_other_files_are_refused(text):
    with pytest.raises(ValueError):
        load_trace(text)
