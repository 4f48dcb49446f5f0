"""Device names, and calibrations that are kept and measured again when they should be."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kernelpro import hardware
from kernelpro.errors import MachineError, UserError
from kernelpro.hardware import base
from kernelpro.schema.hardware import Device, Peaks

DEVICE = Device(kind="cpu", name="test", uuid="CPU-1", units=2, memory_bytes=1 << 30, driver="1")


class CountingKind:
    """A device kind that counts how often it was measured."""

    measured = 0

    def count(self) -> int:
        return 2

    def probe(self, index: int) -> Device:
        return dataclasses.replace(DEVICE, index=index)

    def measure(self, device: Device) -> Peaks:
        CountingKind.measured += 1
        return Peaks(copy_gb_s=float(self.measured), flops={"float32": 1.0}, source="measured")


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> type[CountingKind]:
    CountingKind.measured = 0
    monkeypatch.setitem(hardware.devices._objects, "cpu", CountingKind)
    return CountingKind


def test_names_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    class OneGpu(CountingKind):
        def count(self) -> int:
            return 1

    monkeypatch.setitem(hardware.devices._objects, "cuda", OneGpu)
    assert hardware.resolve_device("auto") == "cuda:0"
    assert hardware.resolve_device("cuda") == "cuda:0"
    assert hardware.resolve_device("cuda:3") == "cuda:3"
    assert hardware.resolve_device("cpu") == "cpu"
    with pytest.raises(UserError, match="this machine has 1"):
        hardware.probe("cuda:1")


def test_auto_without_a_gpu_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoGpu(CountingKind):
        def count(self) -> int:
            return 0

    monkeypatch.setitem(hardware.devices._objects, "cuda", NoGpu)
    assert hardware.resolve_device("auto") == "cpu"
    with pytest.raises(MachineError, match="none that works"):
        hardware.probe("cuda")


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cuda:-1", "", "cpu:"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="Use auto, cpu, cuda or cuda:N"):
        hardware.resolve_device(name)


def test_peaks_are_measured_once_per_identity(tmp_path: Path, counting: type[CountingKind]) -> None:
    first = hardware.peaks(DEVICE, cache_root=tmp_path)
    assert hardware.peaks(DEVICE, cache_root=tmp_path) == first
    assert counting.measured == 1
    assert hardware.peaks(DEVICE, cache_root=tmp_path, remeasure=True).copy_gb_s == 2.0
    assert hardware.peaks(DEVICE, cache_root=tmp_path).copy_gb_s == 2.0
    for change in ({"driver": "2"}, {"uuid": "CPU-2"}, {"compiler": "gcc 13"}, {"toolkit": "13.1"}):
        hardware.peaks(dataclasses.replace(DEVICE, **change), cache_root=tmp_path)
    assert counting.measured == 6


def test_a_damaged_calibration_is_measured_again(
    tmp_path: Path, counting: type[CountingKind]
) -> None:
    hardware.peaks(DEVICE, cache_root=tmp_path)
    (path,) = (tmp_path / "peaks").iterdir()
    path.write_text(path.read_text()[:40])
    assert hardware.peaks(DEVICE, cache_root=tmp_path).copy_gb_s == 2.0
    assert base._read_peaks(path) is not None


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, counting: type[CountingKind]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(MachineError, match="Cannot keep the calibration"):
        hardware.peaks(DEVICE, cache_root=blocked)
