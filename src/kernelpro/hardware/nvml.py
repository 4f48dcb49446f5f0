"""Reads a GPU's state through NVML: clocks, heat, power, throttling, neighbours. Never sets any.

NVML is optional (package ``nvidia-ml-py``); what it does not tell is listed with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from kernelpro.schema.profile import Missing

Value = TypeVar("Value")

HARMLESS_REASONS = {"GpuIdle", "ApplicationsClocksSetting", "None"}
"""Clock event reasons that do not distort a timing."""
_REMEDY = "pip install 'kernelpro[cuda]' and use a machine with NVIDIA's driver"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuState:
    """One reading. None = not reported; ``missing`` says why."""

    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    throttle_reasons: tuple[str, ...] | None = None
    """Active clock event reasons by NVML's names; the harmless ones are left out."""
    foreign_processes: tuple[int, ...] | None = None
    """Process ids of others computing on this GPU (in a container they may be hidden)."""
    driver: str | None = None
    missing: tuple[Missing, ...] = ()


def read_state(uuid: str) -> GpuState:
    """The state of the GPU with this ``uuid``; everything missing, with a reason, without NVML."""
    try:
        import pynvml
    except ImportError:
        return _nothing("the package nvidia-ml-py is not installed")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return _nothing(f"NVML does not start: {error}")
    try:
        return _read(pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid))
    except pynvml.NVMLError as error:
        return _nothing(f"NVML does not know GPU {uuid}: {error}")
    finally:
        pynvml.nvmlShutdown()


def _nothing(reason: str) -> GpuState:
    return GpuState(missing=(Missing(what="gpu_state", reason=reason, remedy=_REMEDY),))


def _read(nvml: Any, handle: Any) -> GpuState:
    missing: list[Missing] = []

    def ask(what: str, question: Callable[[], Value]) -> Value | None:
        try:
            return question()
        except nvml.NVMLError as error:
            missing.append(Missing(what=what, reason=str(error)))
            return None

    def clock(kind: int) -> Callable[[], int]:
        return lambda: int(nvml.nvmlDeviceGetClockInfo(handle, kind))

    milliwatts = ask("power_w", lambda: float(nvml.nvmlDeviceGetPowerUsage(handle)))
    limit = ask("power_limit_w", lambda: float(nvml.nvmlDeviceGetEnforcedPowerLimit(handle)))
    return GpuState(
        sm_clock_mhz=ask("sm_clock_mhz", clock(nvml.NVML_CLOCK_SM)),
        memory_clock_mhz=ask("memory_clock_mhz", clock(nvml.NVML_CLOCK_MEM)),
        max_sm_clock_mhz=ask(
            "max_sm_clock_mhz",
            lambda: int(nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)),
        ),
        temperature_c=ask(
            "temperature_c",
            lambda: int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        ),
        power_w=None if milliwatts is None else milliwatts / 1000.0,
        power_limit_w=None if limit is None else limit / 1000.0,
        throttle_reasons=ask("throttle_reasons", lambda: reasons(nvml, handle)),
        foreign_processes=ask("foreign_processes", lambda: _foreign(nvml, handle)),
        driver=ask("driver", lambda: str(nvml.nvmlSystemGetDriverVersion())),
        missing=tuple(missing),
    )


def reasons(nvml: Any, handle: Any) -> tuple[str, ...]:
    """Clock event reasons in force by NVML's names, without the harmless ones."""
    mask = int(nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    prefix = "nvmlClocksEventReason"
    bits = {name.removeprefix(prefix): getattr(nvml, name) for name in dir(nvml)
            if name.startswith(prefix) and isinstance(getattr(nvml, name), int)}  # fmt: skip
    active = {name for name, bit in bits.items() if bit and mask & bit and name != "All"}
    return tuple(sorted(active - HARMLESS_REASONS))


def _foreign(nvml: Any, handle: Any) -> tuple[int, ...]:
    """Compute processes outside this process's session: its own workers are no neighbours."""
    pids = [int(p.pid) for p in nvml.nvmlDeviceGetComputeRunningProcesses(handle)]
    return tuple(sorted(pid for pid in pids if not _is_ours(pid)))


def _is_ours(pid: int) -> bool:
    """True if ``pid`` is this process or descends from it."""
    seen = 0
    while pid > 1 and seen < 64:
        if pid == os.getpid():
            return True
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                pid = int(file.read().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError, ValueError):
            return False
        seen += 1
    return False
