"""Nominal peaks agree with the vendor's published figures."""

from __future__ import annotations

import pytest

from kernelpro.hardware.specs import nominal_flops, nominal_peaks, unit_rates
from kernelpro.schema.hardware import Device


def _gpu(capability: tuple[int, int], units: int, clock_mhz: float) -> Device:
    return Device(kind="cuda", name="x", uuid="x", units=units, memory_bytes=1 << 34,
                  capability=capability, clock_mhz=clock_mhz)  # fmt: skip


@pytest.mark.parametrize(("device", "published"), [
    (_gpu((8, 0), 108, 1410), {"float64": 9.7, "float32": 19.5, "tf32": 156, "float16": 312}),
    (_gpu((8, 6), 84, 1740), {"float32": 37.4, "tf32": 74.8, "float16": 149.7}),
    (_gpu((8, 9), 142, 2520), {"float32": 91.6, "tf32": 183, "float16": 362, "float8": 733}),
    (_gpu((9, 0), 132, 1830), {"tf32": 494, "float16": 989, "bfloat16": 989, "float8": 1979}),
    (_gpu((9, 0), 132, 1980), {"float64": 33.5, "float32": 67}),
    (_gpu((10, 0), 148, 1850), {"float16": 2250, "float8": 4500}),
    (_gpu((12, 0), 188, 2600), {"float32": 125, "tf32": 250, "float16": 503}),
])  # fmt: skip
def test_published_teraflops(device: Device, published: dict[str, float]) -> None:
    flops = nominal_flops(device)
    for name, teraflops in published.items():
        assert flops[name] / 1e12 == pytest.approx(teraflops, rel=0.02), name


def test_unknown_architectures_have_no_peaks_rather_than_wrong_ones() -> None:
    assert unit_rates(None) is None and unit_rates((7, 5)) is None
    assert nominal_flops(_gpu((7, 5), 40, 1500)) == {}
    assert "float8" not in nominal_flops(_gpu((8, 0), 108, 1410))


def test_minor_revisions_take_their_generations_rates() -> None:
    assert unit_rates((8, 7)) == unit_rates((8, 6))
    assert unit_rates((12, 1)) == unit_rates((12, 0))


def test_peaks_say_where_they_come_from() -> None:
    peaks = nominal_peaks(_gpu((9, 0), 132, 1980), 4900.0)
    assert peaks.source == "specification" and peaks.copy_gb_s == 4900.0
