"""A GPU's total-energy counter and state through NVML. Reads only; sets nothing."""

from __future__ import annotations

import time
from typing import Any

from kernelpro.energy.trace import Reading
from kernelpro.hardware.nvml import reasons
from kernelpro.schema.profile import Missing

_REMEDY = "pip install 'kernelpro[cuda]' and use a GPU of the Volta generation or later"


class NvmlSensor:
    """``nvmlDeviceGetTotalEnergyConsumption``: millijoules since the driver was loaded."""

    meter = "nvml-total-energy"

    def __init__(self, nvml: Any, handle: Any, device: str) -> None:
        self._nvml, self._handle = nvml, handle
        self.device = device
        self.power_limit_w = self._ask(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle), 1e-3)

    def energy_j(self) -> float:
        """The counter's running total; ``OSError`` if the driver stops answering."""
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1e3
        except self._nvml.NVMLError as error:
            raise OSError(str(error)) from error

    def state(self) -> Reading:
        """Board power, clocks, temperature and the reasons for lowered clocks."""
        nvml, handle = self._nvml, self._handle
        return Reading(
            t_s=time.perf_counter(),
            power_w=self._ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle), 1e-3),
            sm_clock_mhz=self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            memory_clock_mhz=self._ask(
                lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)
            ),
            temperature_c=self._ask(
                lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
            ),
            limits=self._reasons(),
        )

    def close(self) -> None:
        """Let go of NVML."""
        self._nvml.nvmlShutdown()

    def _ask(self, question: Any, scale: float = 1.0) -> float | None:
        try:
            return scale * float(question())
        except self._nvml.NVMLError:
            return None

    def _reasons(self) -> tuple[str, ...] | None:
        try:
            return reasons(self._nvml, self._handle)
        except self._nvml.NVMLError:
            return None


def open_nvml(uuid: str) -> NvmlSensor | Missing:
    """The counter of the GPU with this ``uuid``, or why there is none."""
    try:
        import pynvml
    except ImportError:
        return _missing("the package nvidia-ml-py is not installed")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return _missing(f"NVML does not start: {error}")
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
        return NvmlSensor(pynvml, handle, str(pynvml.nvmlDeviceGetName(handle)))
    except pynvml.NVMLError as error:
        pynvml.nvmlShutdown()
        return _missing(f"GPU {uuid} has no energy counter that can be read: {error}")


def _missing(reason: str) -> Missing:
    return Missing(what="energy", reason=reason, remedy=_REMEDY)
