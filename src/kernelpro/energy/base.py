"""Sensors by kind of device: what can be read, or why it cannot."""

from __future__ import annotations

from typing import Protocol

from kernelpro.energy.trace import Reading
from kernelpro.schema.hardware import Device
from kernelpro.schema.profile import Missing


class Sensor(Protocol):
    """Reads one device's energy counter. Changes nothing on it."""

    meter: str
    """What is read: ``nvml-total-energy``, ``rapl``."""
    device: str
    power_limit_w: float | None

    def energy_j(self) -> float:
        """The counter's running total; quick enough for 500 calls a second."""
        ...

    def state(self) -> Reading:
        """Power, clocks, temperature and limits, as far as they are reported."""
        ...

    def close(self) -> None:
        """Let go of the driver."""
        ...


def open_sensor(device: Device) -> Sensor | Missing:
    """The energy counter of ``device``; else what is missing, why, and what would help."""
    if device.kind == "cuda":
        from kernelpro.energy.nvml_sensor import open_nvml

        return open_nvml(device.uuid)
    from kernelpro.energy.rapl import open_rapl

    return open_rapl()
