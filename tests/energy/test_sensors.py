"""Real counters where there are any; elsewhere the reason and a remedy, never a number."""

from __future__ import annotations

import os
import sys
import types

import pytest

from kernelpro.energy import nvml_sensor
from kernelpro.energy.base import open_sensor
from kernelpro.energy.rapl import RaplSensor, open_rapl
from kernelpro.hardware import probe
from kernelpro.schema.profile import Missing


def domain(root, number, name, uj, span=1_000_000):
    folder = root / f"intel-rapl:{number}"
    folder.mkdir(parents=True)
    (folder / "name").write_text(name + "\n")
    (folder / "energy_uj").write_text(f"{uj}\n")
    (folder / "max_energy_range_uj").write_text(f"{span}\n")
    return folder


def test_packages_and_dram_are_summed_and_parts_of_packages_are_not(tmp_path):
    package = domain(tmp_path, "0", "package-0", 100)
    dram = domain(tmp_path, "0:1", "dram", 100)
    core = domain(tmp_path, "0:0", "core", 100)
    sensor = open_rapl(tmp_path)
    assert isinstance(sensor, RaplSensor) and sensor.energy_j() == 0.0
    for folder, uj in ((package, 500_100), (dram, 100_100), (core, 900_000)):
        (folder / "energy_uj").write_text(str(uj))
    assert sensor.energy_j() == pytest.approx(0.6)


def test_a_counter_that_wraps_around_goes_on(tmp_path):
    package = domain(tmp_path, "0", "package-0", 900_000, span=1_000_000)
    sensor = open_rapl(tmp_path)
    (package / "energy_uj").write_text("100000")
    assert sensor.energy_j() == pytest.approx(0.2)


def test_no_domain_is_missing_with_a_reason(tmp_path):
    found = open_rapl(tmp_path)
    assert isinstance(found, Missing) and "no RAPL package domain" in found.reason
    assert found.remedy


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_counter_for_root_only_says_so(tmp_path):
    (domain(tmp_path, "0", "package-0", 1) / "energy_uj").chmod(0)
    assert "root only" in open_rapl(tmp_path).reason


def test_a_damaged_counter_is_missing(tmp_path):
    (domain(tmp_path, "0", "package-0", 1) / "energy_uj").write_text("nonsense")
    assert "cannot be read" in open_rapl(tmp_path).reason


def test_this_machine_gives_a_counter_or_a_reason():
    found = open_sensor(probe("cpu"))
    if isinstance(found, Missing):
        assert found.what == "energy" and found.reason and found.remedy
    else:
        assert found.energy_j() >= 0.0


def fake_nvml(**overrides):
    """Test double for the module ``pynvml``: the calls we make, with plain answers."""

    class NVMLError(Exception):
        pass

    def refuse(*_):
        raise NVMLError("Not Supported")

    names = {
        "NVMLError": NVMLError, "nvmlInit": lambda: None, "nvmlShutdown": lambda: None,
        "nvmlDeviceGetHandleByUUID": lambda uuid: uuid, "nvmlDeviceGetName": lambda h: "Toy GPU",
        "nvmlDeviceGetTotalEnergyConsumption": lambda h: 12_500,
        "nvmlDeviceGetEnforcedPowerLimit": lambda h: 700_000,
        "nvmlDeviceGetPowerUsage": lambda h: 123_000,
        "nvmlDeviceGetClockInfo": lambda h, kind: 1980, "NVML_CLOCK_SM": 1, "NVML_CLOCK_MEM": 2,
        "nvmlDeviceGetTemperature": refuse, "NVML_TEMPERATURE_GPU": 0,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda h: 4,
        "nvmlClocksEventReasonSwPowerCap": 4, "nvmlClocksEventReasonGpuIdle": 1,
    }  # fmt: skip
    names |= dict.fromkeys(overrides.get("refused", ()), refuse)
    return types.SimpleNamespace(**names)


def test_an_nvml_counter_in_joules_and_what_is_not_reported_stays_unknown(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    sensor = nvml_sensor.open_nvml("GPU-1")
    assert (sensor.energy_j(), sensor.power_limit_w, sensor.device) == (12.5, 700.0, "Toy GPU")
    state = sensor.state()
    assert (state.power_w, state.temperature_c, state.limits) == (123.0, None, ("SwPowerCap",))


def test_a_gpu_without_a_counter_is_missing(monkeypatch):
    refused = ("nvmlDeviceGetTotalEnergyConsumption",)
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(refused=refused))
    found = nvml_sensor.open_nvml("GPU-1")
    assert isinstance(found, Missing) and "no energy counter" in found.reason


def test_a_driver_that_stops_answering_is_an_os_error(monkeypatch):
    nvml = fake_nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    sensor = nvml_sensor.open_nvml("GPU-1")

    def lost(_):
        raise nvml.NVMLError("GPU is lost")

    nvml.nvmlDeviceGetTotalEnergyConsumption = lost
    with pytest.raises(OSError, match="GPU is lost"):
        sensor.energy_j()


@pytest.mark.gpu
def test_the_gpus_counter_moves():
    import time

    from kernelpro.energy.trace import Reading
    from kernelpro.energy.windows import find_edges

    sensor = open_sensor(probe("cuda"))
    assert not isinstance(sensor, Missing), sensor
    readings, start = [], time.perf_counter()
    while time.perf_counter() - start < 1.0:
        readings.append(Reading(time.perf_counter(), sensor.energy_j()))
    sensor.close()
    assert len(find_edges(readings)) >= 4
