"""What a GPU's state means for a measurement."""

from __future__ import annotations

import pytest

from kernelpro.evaluation.conditions import gpu_conditions, judged
from kernelpro.hardware import probe
from kernelpro.hardware.nvml import GpuState
from kernelpro.schema.profile import Missing


def test_a_quiet_gpu_is_on_record_without_a_warning() -> None:
    state = GpuState(sm_clock_mhz=1980, temperature_c=41, throttle_reasons=(), foreign_processes=())
    evidence, warnings = judged(state)
    assert evidence["gpu_state"]["sm_clock_mhz"] == 1980 and warnings == []


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (GpuState(throttle_reasons=("HwThermalSlowdown", "SwPowerCap")), "HwThermalSlowdown"),
        (GpuState(foreign_processes=(17, 18)), "17, 18"),
    ],
)
def test_lowered_clocks_and_neighbours_are_warned_of(state: GpuState, said: str) -> None:
    (warning,) = judged(state)[1]
    assert said in warning and "SwPowerCap" not in warning


def test_reaching_the_power_limit_is_no_reason_for_doubt() -> None:
    evidence, warnings = judged(GpuState(throttle_reasons=("SwPowerCap",)))
    assert evidence["gpu_state"]["throttle_reasons"] == ("SwPowerCap",) and warnings == []


def test_what_could_not_be_read_has_its_reason() -> None:
    gap = Missing(what="gpu_state", reason="the package nvidia-ml-py is not installed")
    evidence, warnings = judged(GpuState(missing=(gap,)))
    assert evidence == {"gpu_state": {"missing": [f"gpu_state: {gap.reason}"]}} and warnings == []


def test_a_cpu_has_no_such_state() -> None:
    assert gpu_conditions(probe("cpu")) == ({}, [])
