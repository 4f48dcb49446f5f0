"""Prices come out of a trace whose powers are known; real work of known size really runs."""

from __future__ import annotations

import pytest
from tests.energy.simulated import busy, trace_of

from kernelpro.energy.calibration import back_to_back, costs_of
from kernelpro.energy.trace import Window
from kernelpro.errors import MachineError
from kernelpro.hardware import peaks, probe
from kernelpro.hardware.costs import keep_costs, read_costs
from kernelpro.hardware.known_work import KnownWork, known_work
from kernelpro.schema.hardware import Peaks

BYTES, FLOPS = 2e9, 4e9


def nothing():
    pass


PIECES = [
    KnownWork("spin", "active", 0.0, nothing, nothing),
    KnownWork("copy", "dram", BYTES, nothing, nothing),
    KnownWork("fma", "flop", FLOPS, nothing, nothing, "float32"),
    KnownWork("matmul", "flop", FLOPS, nothing, nothing, "float16", dram_bytes=1e8),
    KnownWork("slack", "flop", FLOPS, nothing, nothing, "float64"),
]
WATTS = {"spin": 120.0, "copy": 320.0, "fma": 420.0, "matmul": 460.0, "slack": 119.0}


def trace():
    windows = [Window("idle", 0.0, 2.0, 0)]
    for number, piece in enumerate(PIECES):
        windows += [Window(piece.name, 3.0 + 4 * number + 2 * k, 4.5 + 4 * number + 2 * k, 1500)
                    for k in range(2)]  # fmt: skip
    return trace_of(busy(windows, WATTS, idle_w=80.0), windows)


def test_costs_are_what_is_above_an_awake_device():
    costs = costs_of(trace(), PIECES)
    per_launch_s = 1e-3
    assert costs.idle_w == pytest.approx(80.0, rel=0.02)
    assert costs.active_w == pytest.approx(120.0, rel=0.01)
    dram = 1e12 * 200.0 * per_launch_s / BYTES
    assert costs.dram_pj_per_byte == pytest.approx(dram, rel=0.02)
    assert costs.pj_per_flop["float32"] == pytest.approx(1e12 * 0.3 / FLOPS, rel=0.02)
    beside = 1e8 * dram
    assert costs.pj_per_flop["float16"] == pytest.approx((1e12 * 0.34 - beside) / FLOPS, rel=0.02)


def test_what_was_not_above_the_floor_is_missing_and_never_zero():
    assert "float64" not in costs_of(trace(), PIECES).pj_per_flop


def test_work_that_was_not_measured_is_named():
    other = KnownWork("other", "dram", 1.0, nothing, nothing)
    with pytest.raises(MachineError, match="energy of other was not measured"):
        costs_of(trace(), [*PIECES, other])


class Measures:
    """Stands for the device kind, whose own measurement takes seconds."""

    def measure(self, device):
        return Peaks(copy_gb_s=1.0, flops={}, source="measured")


def test_costs_are_kept_with_the_device(tmp_path, monkeypatch):
    device, costs = probe("cpu"), costs_of(trace(), PIECES)
    monkeypatch.setattr("kernelpro.hardware.base._kind", lambda name: Measures())
    assert read_costs(device, tmp_path) is None
    path = keep_costs(device, costs, tmp_path)
    assert read_costs(device, tmp_path) == costs
    assert peaks(device, cache_root=tmp_path).energy == costs
    path.write_text("{")
    assert read_costs(device, tmp_path) is None


def test_known_work_of_this_cpu_runs_without_a_pause():
    for work in known_work(probe("cpu")):
        burst = back_to_back(work)(0.05)
        assert burst.launches >= 1 and burst.end_s - burst.start_s >= 0.05
        assert (work.amount > 0) == (work.kind != "active")
