"""The floor counts what nobody can avoid, at a rate nothing can beat."""

from __future__ import annotations

import dataclasses

import pytest
from problems_for_tests import make

from kernelpro.evaluation.expectation import Drawer, Expectation
from kernelpro.evaluation.floor import Floor, compulsory_bytes, confirmed, make_floor
from kernelpro.evaluation.reference import Reference
from kernelpro.hardware import probe
from kernelpro.schema.hardware import Peaks

PEAKS = Peaks(copy_gb_s=10.0, flops={}, source="measured", cache_gb_s=100.0)


def _expect(body: str, inputs: str, constructor: str = "pass") -> Expectation:
    reference = Reference(make(body, inputs, constructor=constructor), "cpu", construction_seed=1)
    drawer = Drawer(reference, reference.traits(reference.draw(0)))
    return drawer.answer(drawer.draw("default", 1))


@pytest.mark.parametrize(
    ("body", "inputs", "moved"),
    [
        ("return torch.relu(x)", "torch.rand(100, 100)", 80_000),
        ("return x + y", "torch.rand(100, 100), torch.rand(100)", 80_400),
        ("return x.t()", "torch.rand(100, 100)", 0),
        ("return x[:1] + 1", "torch.rand(100, 100)", 400),
        ("return F.embedding(x, y)", "torch.arange(5), torch.rand(9000, 8)", 160),
    ],
)
def test_bytes(body: str, inputs: str, moved: int) -> None:
    assert compulsory_bytes(_expect(body, inputs)) == moved


def test_a_degenerate_problem_need_not_read_its_inputs() -> None:
    expected = _expect("return torch.relu(x)", "torch.rand(100, 100)")
    assert compulsory_bytes(expected, inputs_matter=False) == 40_000


def test_small_problems_run_at_cache_speed_and_large_ones_at_memory_speed() -> None:
    expected = _expect("return torch.relu(x)", "torch.rand(1000, 1000)")
    device = probe("cpu")
    warm = make_floor(expected, dataclasses.replace(device, l3_bytes=300 << 20), PEAKS)
    cold = make_floor(expected, dataclasses.replace(device, l3_bytes=1, l2_bytes=1), PEAKS)
    assert isinstance(warm, Floor) and isinstance(cold, Floor)
    assert (warm.level, cold.level) == ("cache", "memory")
    assert cold.us == pytest.approx(800.0) and warm.us == pytest.approx(80.0)
    assert cold.impossible(100.0) and not cold.impossible(500.0)
    assert cold.share(1600.0) == pytest.approx(0.5)


def test_a_calibration_that_is_too_low_is_corrected_before_anyone_is_accused() -> None:
    wrong = Floor(us=1e6, bytes=1 << 20, gb_s=1e-3, level="memory", margin=0.5)
    right = confirmed(wrong, "cpu")
    assert right.gb_s > 0.1 and right.us < 1e5
    fast = Floor(us=1e-3, bytes=1 << 20, gb_s=1e6, level="memory", margin=0.5)
    assert confirmed(fast, "cpu") == dataclasses.replace(fast, us=(1 << 20) / 1e9)


def test_without_a_measured_rate_there_is_a_reason_and_no_floor() -> None:
    expected = _expect("return torch.relu(x)", "torch.rand(100, 100)")
    device = dataclasses.replace(probe("cpu"), l3_bytes=300 << 20)
    assert "not been measured" in str(make_floor(expected, device, None))
    no_cache = dataclasses.replace(PEAKS, cache_gb_s=None)
    assert "cache" in str(make_floor(expected, device, no_cache))
