"""``kernelpro energy`` over a kept trace, and its errors where there is no counter."""

from __future__ import annotations

import json

import pytest
from tests.energy.simulated import busy, in_turns, trace_of

from kernelpro import api
from kernelpro.energy.base import open_sensor
from kernelpro.hardware import probe
from kernelpro.schema.profile import Missing


@pytest.fixture(params=["trace.json", "trace.json.gz"])
def kept(tmp_path, request):
    windows = in_turns(["mine.py", "yours.py"], 4)
    trace = trace_of(busy(windows, {"mine.py": 500.0, "yours.py": 550.0}), windows, noise=0.3)
    return api.write_trace(trace, tmp_path / request.param)


def test_a_kept_trace_is_compared_again(run, kept):
    ran = run("energy", "--replay", str(kept))
    assert ran.code == 0, ran.err
    assert "mine.py" in ran.out and "second over first 1.1" in ran.out
    assert "significant" in ran.out and "4 pairs of windows" in ran.out


def test_json_is_one_object_without_the_trace(run, kept):
    found = json.loads(run("energy", "--replay", str(kept), "--json").out)
    assert found["first"] == "mine.py" and "trace" not in found
    assert found["comparison"]["energy"]["ratio"]["value"] == pytest.approx(1.1, rel=0.01)


def test_files_that_hold_no_trace_of_two_are_refused(run, tmp_path, kept):
    (tmp_path / "other.json").write_text("{}")
    ran = run("energy", "--replay", str(tmp_path / "other.json"))
    assert ran.code == 2 and "is not an energy trace" in ran.complaint
    windows = in_turns(["alone"], 2)
    api.write_trace(trace_of(busy(windows, {"alone": 1.0}), windows), tmp_path / "one.json")
    ran = run("energy", "--replay", str(tmp_path / "one.json"))
    assert ran.code == 2 and "windows of 1 kernels (alone)" in ran.complaint


def test_two_files_are_wanted(run):
    ran = run("energy", "only.py")
    assert ran.code == 2 and "Name two files" in ran.complaint


@pytest.mark.skipif(not isinstance(open_sensor(probe("cpu")), Missing), reason="has a counter")
def test_without_a_counter_the_machine_cannot_do_it(run, tmp_path):
    ran = run("energy", "a.py", "b.py", "--device", "cpu")
    assert ran.code == 3 and "cannot be measured" in ran.complaint
    ran = run("calibrate", "--energy", "--device", "cpu")
    assert ran.code == 3 and "cannot be measured" in ran.complaint
